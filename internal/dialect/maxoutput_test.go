package dialect

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The bound of an answer is lowered by the name that the body has, or else added by the name that its API has.
func TestSetMaxOutput(t *testing.T) {
	openai, other := Endpoint{Provider: OpenAI, API: Chat}, Endpoint{Provider: Compatible, API: Chat}
	for _, c := range []struct {
		of         Endpoint
		body, want string
	}{
		{openai, `{"model":"m","max_tokens":8192}`, `{"model":"m","max_tokens":812}`},
		{openai, `{"max_completion_tokens" : 1e4 ,"model":"m"}`, `{"max_completion_tokens" : 812 ,"model":"m"}`},
		{openai, `{"max_completion_tokens":9000,"max_tokens":100}`, `{"max_completion_tokens":812,"max_tokens":100}`},
		{openai, `{"max_completion_tokens":900,"max_tokens":100}`, `{"max_completion_tokens":812,"max_tokens":100}`},
		{openai, `{"model":"m"}`, `{"max_completion_tokens":812,"model":"m"}`},
		{openai, `{"max_tokens":null,"model":"m"}`, `{"max_completion_tokens":812,"max_tokens":null,"model":"m"}`},
		{openai, `{"max_completion_tokens":null,"model":"m"}`, `{"max_completion_tokens":812,"model":"m"}`},
		{openai, `{"max_tokens":0}`, `{"max_tokens":812}`},
		{openai, `{"m\u0061x_tokens":5000,"x":{"max_tokens":5000}}`, `{"m\u0061x_tokens":812,"x":{"max_tokens":5000}}`},
		{openai, `{"max_tokens":5000,"max_tokens":6000}`, `{"max_tokens":812,"max_tokens":812}`},
		{openai, "\ufeff { }", "\ufeff {\"max_completion_tokens\":812 }"},
		{other, ` {"model":"m"}`, ` {"max_tokens":812,"model":"m"}`},
		{Endpoint{Provider: Azure, API: Chat, Model: "d"}, `{"n":1}`, `{"max_completion_tokens":812,"n":1}`},
		{Endpoint{Provider: OpenAI, API: Completions}, `{"prompt":"p"}`, `{"max_tokens":812,"prompt":"p"}`},
		{Endpoint{Provider: OpenAI, API: Responses}, `{"max_output_tokens":9000}`, `{"max_output_tokens":812}`},
		{Endpoint{Provider: OpenAI, API: Responses}, `{"max_tokens":9000}`, `{"max_output_tokens":812,"max_tokens":9000}`},
		{Endpoint{Provider: Anthropic, API: Messages}, `{"max_tokens":9000}`, `{"max_tokens":812}`},
		{Endpoint{Provider: Cohere, API: CohereChat}, `{"message":"x"}`, `{"max_tokens":812,"message":"x"}`},
		{Endpoint{Provider: Gemini, API: Generate}, `{"contents":[]}`, `{"generationConfig":{"maxOutputTokens":812},"contents":[]}`},
		{Endpoint{Provider: Gemini, API: Generate}, `{"generationConfig":null}`, `{"generationConfig":{"maxOutputTokens":812}}`},
		{Endpoint{Provider: Gemini, API: Generate}, `{"generationConfig":{}}`, `{"generationConfig":{"maxOutputTokens":812}}`},
		{Endpoint{Provider: Gemini, API: Generate}, `{"generation_config":{"topK":1}}`, `{"generation_config":{"max_output_tokens":812,"topK":1}}`},
		{Endpoint{Provider: Gemini, API: Generate}, `{"generationConfig":{"maxOutputTokens":9000}}`, `{"generationConfig":{"maxOutputTokens":812}}`},
		{Endpoint{Provider: Gemini, API: Interactions}, `{"input":"x"}`, `{"generation_config":{"max_output_tokens":812},"input":"x"}`},
		{Endpoint{Provider: Mistral, API: Conversations}, `{"completion_args":{"temperature":0}}`, `{"completion_args":{"max_tokens":812,"temperature":0}}`},
		{Endpoint{Provider: Bedrock, API: Converse}, `{"inferenceConfig":{"maxTokens":9000}}`, `{"inferenceConfig":{"maxTokens":812}}`},
		{Endpoint{Provider: Bedrock, API: Converse}, `{"messages":[]}`, `{"inferenceConfig":{"maxTokens":812},"messages":[]}`},
		{Endpoint{Provider: Bedrock, API: Converse}, `{"inferenceConfig":{"maxTokens":9000},"additionalModelRequestFields":{"max_tokens":9000}}`, ``},
		{Endpoint{Provider: Bedrock, API: Invoke}, `{"max_gen_len":9000}`, `{"max_gen_len":812}`},
		{Endpoint{Provider: Bedrock, API: Invoke}, `{"textGenerationConfig":{"maxTokenCount":9000}}`, `{"textGenerationConfig":{"maxTokenCount":812}}`},
		{Endpoint{Provider: Bedrock, API: Invoke}, `{"prompt":"which field has the bound depends on the model"}`, ``},
		{Endpoint{Provider: Ollama, API: OllamaChat}, `{"options":{"num_predict":-1}}`, `{"options":{"num_predict":812}}`},
		{Endpoint{Provider: Ollama, API: OllamaChat}, `{"options":7}`, ``},
		{Endpoint{Provider: Ollama, API: OllamaGenerate}, `{"prompt":"x"}`, `{"options":{"num_predict":812},"prompt":"x"}`},
		{Endpoint{Provider: OpenAI, API: Embeddings}, `{"input":"x"}`, ``},
	} {
		request, err := c.of.Read([]byte(c.body))
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		ok := request.SetMaxOutput([]byte(c.body), 812)
		pieces, edited := request.Edited([]byte(c.body))
		if got := string(slices.Concat(pieces...)); ok != (c.want != "") || edited != ok || got != c.want {
			t.Errorf("%s %s: %s, %v; want %s", c.of.API, c.body, got, ok, c.want)
			continue
		}
		if again, err := c.of.Read(slices.Concat(pieces...)); ok && (err != nil || again.MaxOutput != 812 || request.MaxOutput != 812) {
			t.Errorf("%s %s: read as %d, %v", c.of.API, c.want, again.MaxOutput, err)
		}
	}
}

// A stream that is asked for its usage has the lower bound, too.
func TestSetMaxOutputAndAskUsage(t *testing.T) {
	for body, want := range map[string]string{
		`{"stream":true,"max_tokens":9000}`:                       `{"stream_options":{"include_usage":true},"stream":true,"max_tokens":50}`,
		`{"stream":true}`:                                         `{"max_completion_tokens":50,"stream_options":{"include_usage":true},"stream":true}`,
		`{"stream":true,"stream_options":null,"max_tokens":9000}`: `{"stream":true,"stream_options":{"include_usage":true},"max_tokens":50}`,
	} {
		request, err := (Endpoint{Provider: OpenAI, API: Chat}).Read([]byte(body))
		if err != nil || !request.SetMaxOutput([]byte(body), 50) {
			t.Fatalf("%s: %v", body, err)
		}
		pieces, ok := request.AskUsage([]byte(body))
		if got := string(slices.Concat(pieces...)); !ok || got != want {
			t.Errorf("%s: %s, %v; want %s", body, got, ok, want)
		}
	}
}

func TestThinkingBudget(t *testing.T) {
	for body, want := range map[string]int{
		`{"thinking":{"type":"enabled","budget_tokens":4096},"max_tokens":9000}`:                     4096,
		`{"thinking":{"type":"disabled"},"metadata":{"budget_tokens":7}}`:                            0,
		`{"generationConfig":{"thinkingConfig":{"thinkingBudget":512,"includeThoughts":true}}}`:      512,
		`{"generationConfig":{"thinking_config":{"thinking_budget":-1}}}`:                            0,
		`{"additionalModelRequestFields":{"thinking":{"budget_tokens":300},"max_tokens":8}}`:         300,
		`{"reasoning":{"max_tokens":100,"effort":"high"}}`:                                           100,
		`{"reasoning":"high","thinking":null}`:                                                       0,
		`{"thinking":{"type":"enabled","token_budget":64}}`:                                          64,
		`{"messages":[{"content":"{\"thinking\":{\"budget_tokens\":9}}"}],"tools":[{"thinking":1}]}`: 0,
	} {
		of := Endpoint{Provider: Anthropic, API: Messages}
		if strings.Contains(body, "generationConfig") {
			of = Endpoint{Provider: Gemini, API: Generate}
		}
		request, err := of.Read([]byte(body))
		if got := request.ThinkingBudget([]byte(body)); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", body, got, err, want)
		}
	}
}

func TestMaxOutputName(t *testing.T) {
	for want, c := range map[string]struct {
		of   Endpoint
		body string
	}{
		"max_tokens":            {Endpoint{Provider: OpenAI, API: Chat}, `{"max_tokens":5}`},
		"max_completion_tokens": {Endpoint{Provider: OpenAI, API: Chat}, `{}`},
		"max_output_tokens":     {Endpoint{Provider: OpenAI, API: Responses}, `{}`},
		"maxOutputTokens":       {Endpoint{Provider: Gemini, API: Generate}, `{}`},
		"maxTokens":             {Endpoint{Provider: Bedrock, API: Converse}, `{}`},
		"num_predict":           {Endpoint{Provider: Ollama, API: OllamaChat}, `{}`},
	} {
		if request, err := c.of.Read([]byte(c.body)); err != nil || request.MaxOutputName() != want {
			t.Errorf("%s of %s: %s, %v; want %s", c.of.API, c.of.Provider, request.MaxOutputName(), err, want)
		}
	}
}

// Whatever the body, the edited one is JSON with the lower bound, and with all else as it was.
func TestSetMaxOutputChangesNothingElse(t *testing.T) { rapid.Check(t, propertySetMaxOutput) }

func propertySetMaxOutput(t *rapid.T) {
	of := rapid.SampledFrom(fuzzedEndpoints).Draw(t, "endpoint")
	value := rapid.SampledFrom([]string{`1`, `8192`, `null`, `-1`, `{}`, `"x"`, `[{"max_tokens":3}]`, `{"max_tokens":9,"maxOutputTokens":10000,"num_predict":7000}`, `{"thinking":{}}`})
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig", "options", "thinking", "x"}), 0, 5, rapid.ID)
	var text []string
	for _, name := range names.Draw(t, "names") {
		text = append(text, fmt.Sprintf("%q:%s", name, value.Draw(t, "value")))
	}
	body := []byte("{" + strings.Join(text, " , ") + "}")
	request, err := of.Read(body)
	if err != nil {
		t.Fatal(err)
	}
	own, tokens := request.MaxOutput, rapid.IntRange(1, 9000).Draw(t, "tokens")
	ok := request.SetMaxOutput(body, tokens)
	if ok && !of.API.Generates() {
		t.Fatalf("%s of %s: %v", body, of.API, ok)
	}
	if !ok {
		return
	}
	pieces, _ := request.Edited(body)
	edited := slices.Concat(pieces...)
	again, err := of.Read(edited)
	if err != nil || again.MaxOutput == 0 || again.MaxOutput > tokens || own > 0 && again.MaxOutput > own {
		t.Fatalf("%s with %d tokens: %s allows %d, %v", body, tokens, edited, again.MaxOutput, err)
	}
	if before, after := withoutBounds(t, body), withoutBounds(t, edited); !reflect.DeepEqual(before, after) {
		t.Fatalf("%s: %s", body, edited)
	}
}

// withoutBounds returns the fields of a body without those that bound its answers.
func withoutBounds(t *rapid.T, body []byte) map[string]any {
	var all map[string]any
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for _, object := range []string{"generationConfig", "options"} {
		if of, ok := all[object].(map[string]any); ok {
			delete(of, "maxOutputTokens")
			delete(of, "num_predict")
		}
		if of, ok := all[object].(map[string]any); all[object] == nil || ok && len(of) == 0 {
			delete(all, object)
		}
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		delete(all, name)
	}
	return all
}
