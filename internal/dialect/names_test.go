package dialect

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

func TestPlainName(t *testing.T) {
	for _, c := range []struct {
		provider    llm.Provider
		model, want string
	}{
		{OpenAI, "gpt-4o", "gpt-4o"},
		{OpenAI, "GPT-4o", "GPT-4o"},
		{Gemini, "gemini-2.5-pro", "gemini-2.5-pro"},
		{Gemini, "models/gemini-2.5-pro", "gemini-2.5-pro"},
		{Gemini, "tunedModels/mine", "tunedModels/mine"},
		{Ollama, "llama3", "llama3"},
		{Ollama, "Llama3:latest", "llama3"},
		{Ollama, "library/llama3:latest", "llama3"},
		{Ollama, "llama3:70B", "llama3:70b"},
		{Ollama, "me/llama3", "me/llama3"},
		{Azure, "GPT-4o", "gpt-4o"},
		{Compatible, "models/X:latest", "models/X:latest"},
		{Bedrock, "anthropic.claude-x-v1:0", "anthropic.claude-x-v1:0"},
		{Bedrock, "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-x-v1:0", "anthropic.claude-x-v1:0"},
		{Bedrock, "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-x-v1:0", "us.anthropic.claude-x-v1:0"},
		{Bedrock, "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc", "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc"},
		{Bedrock, "arn:aws:bedrock:us-east-1::foundation-model/", "arn:aws:bedrock:us-east-1::foundation-model/"},
		{Ollama, "", ""},
	} {
		if got := PlainName(c.provider, c.model); got != c.want || PlainName(c.provider, got) != got {
			t.Errorf("%s calls %q %q; want %q", c.provider, c.model, got, c.want)
		}
	}
}

// All names of a line are those of one model; the first is its base name.
func TestBaseName(t *testing.T) {
	for provider, models := range map[llm.Provider][]string{
		OpenAI:     {"gpt-4o gpt-4o-2024-08-06 gpt-4o-latest", "gpt-4 gpt-4-0613", "gpt-3.5-turbo gpt-3.5-turbo-0125", "gpt-4o-mini gpt-4o-mini-2024-07-18", "o1 o1-2024-12-17"},
		Azure:      {"gpt-4o GPT-4o gpt-4o-2024-08-06"},
		Anthropic:  {"claude-haiku-3-5 claude-haiku-3.5 claude-3-5-haiku claude-3.5-haiku claude-3-5-haiku-20241022 claude-3-5-haiku-latest claude-haiku-3-5-latest", "claude-sonnet-4 claude-sonnet-4-0 claude-4-sonnet claude-4-sonnet-20250514 claude-sonnet-4-20250514 claude-sonnet-4-latest", "claude-sonnet-4-5 claude-sonnet-4.5 claude-sonnet-4-5-20250929", "claude-opus-3 claude-3-opus-20240229 claude-3-opus-latest", "claude-2-1 claude-2.1", "claude-instant-1-2 claude-instant-1.2"},
		Gemini:     {"gemini-2.0-flash gemini-2.0-flash-001 models/gemini-2.0-flash models/gemini-2.0-flash-001 gemini-2.0-flash-latest", "gemini-2.5-pro-preview gemini-2.5-pro-preview-05-06"},
		Vertex:     {"gemini-2.0-flash google/gemini-2.0-flash-001 publishers/google/models/gemini-2.0-flash", "claude-haiku-3-5 claude-3-5-haiku@20241022 publishers/anthropic/models/claude-3-5-haiku@20241022"},
		Mistral:    {"mistral-large mistral-large-latest mistral-large-2411"},
		Cohere:     {"command-r-plus command-r-plus-08-2024"},
		OpenRouter: {"meta/llama-4 meta/llama-4:nitro meta/llama-4:floor meta/llama-4:online meta/llama-4:free meta/llama-4:extended meta/llama-4:thinking Meta/Llama-4:nitro:online meta/llama-4@preset/team meta/llama-4:nitro@preset/team", "anthropic/claude-haiku-3-5 anthropic/claude-3.5-haiku anthropic/claude-3.5-haiku-20241022:beta"},
		Ollama:     {"exp exp:latest EXP library/exp registry.ollama.ai/library/exp:latest Registry.Ollama.AI/library/exp https://registry.ollama.ai/library/exp:latest exp:latest@sha256:00", "exp:70b library/exp:70B", "me/exp registry.ollama.ai/me/exp:latest", "hf.co/me/exp hf.co/me/exp:latest"},
		Bedrock:    {"anthropic.claude-haiku-3-5 anthropic.claude-3-5-haiku-20241022-v1:0 us.anthropic.claude-3-5-haiku-20241022-v1:0 arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-3-5-haiku-20241022-v1:0", "amazon.nova-pro amazon.nova-pro-v1:0 global.amazon.nova-pro-v1:0 amazon.nova-pro-v1:0:24k", "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc arn:aws:bedrock:us-east-1:1:application-inference-profile/abc"},
		Compatible: {"m m-2024-08-06", "M M", "m:latest m:latest"},
	} {
		seen := map[string]string{}
		for _, line := range models {
			names := strings.Fields(line)
			for _, name := range names {
				if got := BaseName(provider, name); got != names[0] || BaseName(provider, got) != got {
					t.Errorf("%s: %q is one of %q; want %q", provider, name, got, names[0])
				}
				if plain := PlainName(provider, name); PlainName(provider, plain) != plain || BaseName(provider, plain) != names[0] {
					t.Errorf("%s: %q is plainly %q", provider, name, plain)
				}
			}
			if other := seen[names[0]]; other != "" {
				t.Errorf("%s: %q and %q are one", provider, other, line)
			}
			seen[names[0]] = line
		}
	}
}

// The plain name of a plain name is that name, whatever a client sends.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"claude-3-5-haiku-20241022-v1:0", "claude-3.-x", "claude-1-2-3-", "library/library/:latest", "models/", "@:-0-latest", "us.eu.x-v1:0"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, provider := range Providers() {
			plain, base := PlainName(provider, name), BaseName(provider, name)
			if PlainName(provider, plain) != plain || BaseName(provider, base) != base || BaseName(provider, plain) != base || name != "" && base == "" {
				t.Errorf("%s: %q is plainly %q, of %q", provider, name, plain, base)
			}
		}
	})
}

func TestUndated(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-4o":                     "gpt-4o",
		"gpt-4o-2024-08-06":          "gpt-4o",
		"gpt-4o-mini-2024-07-18":     "gpt-4o-mini",
		"claude-sonnet-4-20250514":   "claude-sonnet-4",
		"claude-3-5-haiku-20241022x": "claude-3-5-haiku-20241022x",
		"gpt-4-0613":                 "gpt-4-0613",
		"gpt-4o-2024-8-6":            "gpt-4o-2024-8-6",
		"gpt-4o-2o24-08-06":          "gpt-4o-2o24-08-06",
		"gpt-4o_20240806":            "gpt-4o_20240806",
		"-20240806":                  "-20240806",
		"":                           "",
	} {
		if got := undated(model); got != want {
			t.Errorf("%q of %q; want %q", got, model, want)
		}
	}
}
