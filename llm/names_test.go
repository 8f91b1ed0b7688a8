package llm

import "testing"

func TestPlainName(t *testing.T) {
	for _, c := range []struct {
		provider    Provider
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
		if got := Undated(model); got != want {
			t.Errorf("%q of %q; want %q", got, model, want)
		}
	}
}
