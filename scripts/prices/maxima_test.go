package main

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

const oldScript = "export const ms = {id: \"m\", models: {\"a-1\": {id: \"a-1\", open: true, closed: false, limit: {context: 400, output: 40}}}}"

const newFile = `{"api":{"chat:a-1":{"id":"a-1","type":"chat","contextWindow":300,"maxTokens":50},"classifier:c":{"id":"c","type":"classifier","contextWindow":9}}}`

func TestReadMaxima(t *testing.T) {
	old, err := readOld(oldScript)
	if want := (published{model: "a-1", Maxima: llm.Maxima{Context: 400, Output: 40}}); err != nil || len(old) != 1 || old[0] != want {
		t.Errorf("%+v, %v, want %+v", old, err, want)
	}
	found, err := readNew(newFile)
	if want := (published{model: "a-1", Maxima: llm.Maxima{Context: 300, Output: 50}}); err != nil || len(found) != 1 || found[0] != want {
		t.Errorf("%+v, %v, want %+v", found, err, want)
	}
	if _, err := readMaxima(&npmPackage{name: newModels, files: map[string]string{"package/dist/providers/data/m.json": newFile}}); err == nil {
		t.Error("a package with hardly any models passes")
	}
}

func TestAddMaxima(t *testing.T) {
	providers := []provider{
		{ID: "openai", Models: []model{{ID: "a", Match: []string{"a-#"}, Maxima: llm.Maxima{Context: 100}}}},
		{ID: "groq", Models: []model{{ID: "x/a"}, {ID: "b", Maxima: llm.Maxima{Context: 7}}, {ID: "nobody's"}}},
		{ID: "mistral", Models: []model{{ID: "a"}}},
	}
	addMaxima(providers, []published{
		{"openai", "a-1", llm.Maxima{Context: 300, Output: 50}},
		{"openai", "a", llm.Maxima{Context: 200, Output: 60}},
		{"else", "a", llm.Maxima{Context: 900, Output: 10}},
		{"groq", "b", llm.Maxima{Context: 6, Output: 5}},
		{"else", "b", llm.Maxima{Context: 9, Output: 9}},
	})
	for _, c := range []struct {
		name string
		got  model
		want llm.Maxima
	}{
		{"the highest of all", providers[0].Models[0], llm.Maxima{Context: 900, Output: 60}},
		{"that of others", providers[1].Models[0], llm.Maxima{Context: 900, Output: 60}},
		{"the server's own", providers[1].Models[1], llm.Maxima{Context: 7, Output: 5}},
		{"nothing", providers[1].Models[2], llm.Maxima{}},
		{"no maximum of output", providers[2].Models[0], llm.Maxima{Context: 900}},
	} {
		if c.got.Maxima != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, c.got.Maxima, c.want)
		}
	}
}

func TestModelKey(t *testing.T) {
	for name, want := range map[string]string{
		"us.anthropic.claude-sonnet-4-20250514-v1:0": "claude-sonnet-4", "regional.anthropic.claude-sonnet-4-20250514-v1:0": "claude-sonnet-4", "anthropic/claude-4-sonnet": "claude-sonnet-4",
		"meta.llama3-1-8b-instruct-v1:0": "llama3-1-8b-instruct", "openai/GPT-4.1:online": "gpt-4-1", "claude-3-5-sonnet-latest": "claude-sonnet-3-5",
	} {
		if got := modelKey(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
