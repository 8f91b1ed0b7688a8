package dialect

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	type want struct {
		model      string
		stream     bool
		max, n     int
		usageAsked bool
	}
	openAI := func(api API) Endpoint { return Endpoint{Provider: OpenAI, API: api} }
	for _, c := range []struct {
		name string
		to   Endpoint
		body string
		want want
	}{
		{"chat", openAI(Chat), `{"model":"gpt-4o","messages":[],"max_tokens":7}`, want{"gpt-4o", false, 7, 1, true}},
		{"nothing", openAI(Chat), `{}`, want{"", false, 0, 1, true}},
		{"space", openAI(Chat), "\ufeff \r\n\t{ \"model\" : \"m\" ,\n\"n\" : 3 } \n", want{"m", false, 0, 3, true}},
		{"the newer maximum", openAI(Chat), `{"max_completion_tokens":9,"max_tokens":5}`, want{"", false, 9, 1, true}},
		{"the larger maximum", openAI(Chat), `{"max_completion_tokens":5,"max_tokens":9}`, want{"", false, 9, 1, true}},
		{"the older maximum", openAI(Chat), `{"max_tokens":9,"max_completion_tokens":null}`, want{"", false, 9, 1, true}},
		{"another API's maximum", openAI(Chat), `{"max_output_tokens":9}`, want{"", false, 0, 1, true}},
		{"streamed", openAI(Chat), `{"stream":true}`, want{"", true, 0, 1, false}},
		{"streamed with usage", openAI(Chat), `{"stream":true,"stream_options":{"include_usage":true}}`, want{"", true, 0, 1, true}},
		{"streamed without usage", openAI(Chat), `{"stream":true,"stream_options":{"include_usage":false}}`, want{"", true, 0, 1, false}},
		{"asked, then not", openAI(Chat), `{"stream":true,"stream_options":{"include_usage":true},"stream_options":{}}`, want{"", true, 0, 1, false}},
		{"streamed, no word", openAI(Chat), `{"stream":"true"}`, want{"", false, 0, 1, true}},
		{"Mistral", Endpoint{Provider: Mistral, API: Chat}, `{"stream":true}`, want{"", true, 0, 1, true}},
		{"twice", openAI(Chat), `{"model":"a","n":2,"stream":true,"model":"b","n":4,"stream":false}`, want{"b", false, 0, 4, true}},
		{"twice, then no string", openAI(Chat), `{"model":"a","model":{"model":"c"}}`, want{"", false, 0, 1, true}},
		{"escapes", openAI(Chat), `{"mod\u0065l":"gpt\u002d4\/o\ud83d\ude00","\u006e":2}`, want{"gpt-4/o😀", false, 0, 2, true}},
		{"not at the top", openAI(Chat), `{"x":{"model":"a","stream":true},"y":[{"n":5}]}`, want{"", false, 0, 1, true}},
		{"strings that look like fields", openAI(Chat), `{"user":"\"model\":\"b\",\\","model":"a"}`, want{"a", false, 0, 1, true}},
		{"lenient", openAI(Chat), `{"temperature":NaN,"top_p":-Infinity,"n":2,}`, want{"", false, 0, 2, true}},
		{"interactions", Endpoint{Provider: Gemini, API: Interactions}, `{"model":"m","stream":true,"input":"a","generation_config":{"max_output_tokens":8}}`, want{"m", true, 8, 1, true}},
		{"conversations", Endpoint{Provider: Mistral, API: Conversations}, `{"model":"m","stream":true,"inputs":"a","completion_args":{"max_tokens":8}}`, want{"m", true, 8, 1, true}},
		{"Mistral's at Vertex", Endpoint{Provider: Vertex, API: Chat, Model: "m", Stream: true}, `{"messages":[],"max_tokens":8}`, want{"m", true, 8, 1, true}},
		{"chat at Vertex", Endpoint{Provider: Vertex, API: Chat}, `{"model":"m","stream":true}`, want{"m", true, 0, 1, false}},
		{"completions", openAI(Completions), `{"model":"m","prompt":"a","max_tokens":3,"n":2,"best_of":4}`, want{"m", false, 3, 4, true}},
		{"completions of prompts", openAI(Completions), `{"prompt":["a","b","c"],"n":2}`, want{"", false, 0, 6, true}},
		{"completions of tokens", openAI(Completions), `{"prompt":[1,2,3],"n":2}`, want{"", false, 0, 2, true}},
		{"completions of prompts of tokens", openAI(Completions), `{"prompt":[[1,2],[3]],"stream":true}`, want{"", true, 0, 2, false}},
		{"responses", openAI(Responses), `{"model":"m","stream":true,"max_output_tokens":8,"max_tokens":9,"n":3}`, want{"m", true, 8, 1, true}},
		{"embeddings", openAI(Embeddings), `{"model":"m","input":"x","stream":true,"max_tokens":9}`, want{"m", false, 0, 1, true}},
		{"messages", Endpoint{Provider: Anthropic, API: Messages}, `{"model":"m","stream":true,"max_tokens":8}`, want{"m", true, 8, 1, true}},
		{"Cohere", Endpoint{Provider: Cohere, API: CohereChat}, `{"model":"m","stream":true,"max_tokens":8}`, want{"m", true, 8, 1, true}},
		{"Cohere's embeddings", Endpoint{Provider: Cohere, API: CohereEmbed}, `{"model":"m","texts":["a"],"stream":true,"max_tokens":8}`, want{"m", false, 0, 1, true}},
		{"Converse", Endpoint{Provider: Bedrock, API: Converse, Model: "m", Stream: true}, `{"inferenceConfig":{"temperature":1,"maxTokens":8},"max_tokens":9,"stream":false}`, want{"m", true, 8, 1, true}},
		{"Invoke of Anthropic's", Endpoint{Provider: Bedrock, API: Invoke, Model: "m"}, `{"max_tokens":8,"stream":true}`, want{"m", false, 8, 1, true}},
		{"Invoke of Llama", Endpoint{Provider: Bedrock, API: Invoke, Model: "m"}, `{"prompt":"a","max_gen_len":8}`, want{"m", false, 8, 1, true}},
		{"Invoke of Titan", Endpoint{Provider: Bedrock, API: Invoke, Model: "m"}, `{"inputText":"a","textGenerationConfig":{"maxTokenCount":8}}`, want{"m", false, 8, 1, true}},
		{"a deployment", Endpoint{Provider: Azure, API: Chat, Model: "mine"}, `{"model":"m","stream":true}`, want{"mine", true, 0, 1, false}},
		{"Gemini", Endpoint{Provider: Gemini, API: Generate, Model: "g", Stream: true}, `{"model":"m","stream":false,"generationConfig":{"maxOutputTokens":8,"candidateCount":2}}`, want{"g", true, 8, 2, true}},
		{"Gemini in snake case", Endpoint{Provider: Gemini, API: Generate, Model: "g"}, `{"generation_config":{"max_output_tokens":8,"candidate_count":2}}`, want{"g", false, 8, 2, true}},
		{"Gemini twice", Endpoint{Provider: Gemini, API: Generate, Model: "g"}, `{"generationConfig":{"maxOutputTokens":8},"generationConfig":{"candidateCount":2}}`, want{"g", false, 0, 2, true}},
		{"Ollama", Endpoint{Provider: Ollama, API: OllamaChat}, `{"model":"m","options":{"num_predict":8}}`, want{"m", true, 8, 1, true}},
		{"Ollama twice", Endpoint{Provider: Ollama, API: OllamaChat}, `{"options":{"num_predict":8},"options":{}}`, want{"", true, 0, 1, true}},
		{"Ollama not streamed", Endpoint{Provider: Ollama, API: OllamaGenerate}, `{"model":"m","stream":false,"options":{"num_predict":-1}}`, want{"m", false, 0, 1, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := c.to.Read([]byte(c.body))
			got := want{r.Model, r.Stream, r.MaxOutput, r.Answers, r.UsageAsked}
			if err != nil || got != c.want || r.API != c.to.API || r.Provider != c.to.Provider {
				t.Errorf("%s is %+v, %v: want %+v", c.body, got, err, c.want)
			}
		})
	}
}

func TestReadNumbers(t *testing.T) {
	for _, c := range []struct {
		number string
		want   int
	}{
		{"0", 0}, {"1", 1}, {"-1", 0}, {"123456789", 123456789}, {"1e3", 1000}, {"1.0", 1}, {"2.9", 2}, {"0.5", 0}, {"5E+2", 500},
		{"2147483647", math.MaxInt32}, {"2147483648", math.MaxInt32}, {"99999999999999999999999", math.MaxInt32}, {"1e999", math.MaxInt32}, {"-1e999", 0},
		{"NaN", 0}, {"Infinity", 0}, {"inf", 0}, {"0x10", 0}, {"1_0", 0}, {"1-2", 0}, {"null", 0}, {"true", 0}, {`"5"`, 0}, {"[5]", 0}, {`{"max_tokens":5}`, 0},
	} {
		r, err := Endpoint{API: Messages}.Read([]byte(`{"max_tokens":` + c.number + `,"model":"m"}`))
		if err != nil || r.MaxOutput != c.want || r.Model != "m" {
			t.Errorf("%s is %d, %v: want %d", c.number, r.MaxOutput, err, c.want)
		}
	}
}

func TestReadFaults(t *testing.T) {
	const secret = "sesame"
	for _, c := range []struct{ name, body, want string }{
		{"nothing", "", "it must be an object at byte 0"},
		{"blank", " \n", "it must be an object at byte 2"},
		{"a list", `["` + secret + `"]`, "it must be an object at byte 0"},
		{"a string", ` "` + secret + `"`, "it must be an object at byte 1"},
		{"text", secret, "it must be an object at byte 0"},
		{"cut at once", `{`, "it ends too soon at byte 1"},
		{"cut in a key", `{"model":"m","` + secret, "a string without an end at byte 13"},
		{"cut after a key", `{"model":"m","n"`, "no colon after a key at byte 16"},
		{"cut before a value", `{"model":"m","n":`, "it ends too soon at byte 17"},
		{"cut in a string", `{"model":"m","user":"` + secret, "a string without an end at byte 20"},
		{"cut in an escape", `{"model":"m","user":"\`, "a string without an end at byte 20"},
		{"cut in a code", `{"model":"m","user":"\u12`, "a string without an end at byte 20"},
		{"cut after a value", `{"model":"m","n":1`, "it ends too soon at byte 18"},
		{"cut in a list", `{"model":"m","messages":[{"content":"` + secret + `"}`, "it ends too soon at byte 45"},
		{"cut in what does not matter", `{"model":"m","x":[[`, "it ends too soon at byte 19"},
		{"cut in a stream", `{"model":"m","stream":true`, "it ends too soon at byte 26"},
		{"more after it", `{"model":"a"}{"model":"b"}`, "data behind the object at byte 13"},
		{"no colon", `{"model" "m"}`, "no colon after a key at byte 9"},
		{"no comma", `{"model":"m" "n":1}`, "no comma between two items at byte 13"},
		{"no key", `{"model":"m",1:2}`, "no key of an object at byte 13"},
		{"no value", `{"model":"m","n":}`, "no value at byte 17"},
		{"no value that matters not", `{"model":"m","x":}`, "no value at byte 17"},
		{"no value in a prompt", `{"model":"m","messages":[,]}`, "no value at byte 25"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Endpoint{API: Chat}.Read([]byte(c.body))
			if err == nil || err.Error() != "ratelimit: request body: "+c.want {
				t.Errorf("%s fails with %v: want %s", c.body, err, c.want)
			}
			if strings.HasPrefix(c.body, `{"model":"m"`) && (r.Model != "m" || r.Answers != 1) {
				t.Errorf("%s is %+v: what came before the fault is lost", c.body, r)
			}
			if asking, ok := r.AskUsage([]byte(c.body)); ok {
				t.Errorf("%s asks for usage: %s", c.body, asking)
			}
		})
	}
}

func TestReadDeep(t *testing.T) {
	for _, key := range []string{"x", "messages", "tools", "stream_options", "model", "max_tokens"} {
		for _, open := range []string{`[`, `{"a":`, `[{"content":`} {
			deep := []byte(`{"n":2,"` + key + `":` + strings.Repeat(open, 100_000))
			if r, err := (Endpoint{API: Chat}).Read(deep); err == nil || r.Answers != 2 {
				t.Errorf("%s of 100,000 %s is %+v, %v", key, open, r, err)
			}
		}
	}
	deep := `{"messages":` + strings.Repeat(`[`, 50_000) + `"abcd"` + strings.Repeat(`]`, 50_000) + `,"model":"m"}`
	r, err := Endpoint{API: Chat}.Read([]byte(deep))
	if err != nil || r.Model != "m" || r.Prompt != 1 {
		t.Errorf("a deep text is %+v, %v", r, err)
	}
}

func TestAskUsage(t *testing.T) {
	chat := Endpoint{Provider: OpenAI, API: Chat}
	for _, c := range []struct {
		name       string
		to         Endpoint
		body, want string // want is empty where nothing is asked
	}{
		{"absent", chat, `{"model":"m","stream":true}`, `{"stream_options":{"include_usage":true},"model":"m","stream":true}`},
		{"spaces", chat, " {\n\t\"stream\": true\n}\n", " {\"stream_options\":{\"include_usage\":true},\n\t\"stream\": true\n}\n"},
		{"completions", Endpoint{Provider: Compatible, API: Completions}, `{"stream":true}`, `{"stream_options":{"include_usage":true},"stream":true}`},
		{"null", chat, `{"stream":true,"stream_options": null }`, `{"stream":true,"stream_options": {"include_usage":true} }`},
		{"empty", chat, `{"stream":true,"stream_options":{ }}`, `{"stream":true,"stream_options":{"include_usage":true }}`},
		{"another option", chat, `{"stream_options":{ "x":[{}]},"stream":true}`, `{"stream_options":{"include_usage":true, "x":[{}]},"stream":true}`},
		{"null inside", chat, `{"stream_options":{"include_usage":null,"x":1},"stream":true}`, `{"stream_options":{"include_usage":true,"x":1},"stream":true}`},
		{"escaped", chat, `{"stream\u005foptions":{},"stream":true}`, `{"stream\u005foptions":{"include_usage":true},"stream":true}`},
		{"twice, the last without", chat, `{"stream_options":{"include_usage":true},"stream_options":{},"stream":true}`, `{"stream_options":{"include_usage":true},"stream_options":{"include_usage":true},"stream":true}`},
		{"twice, the last with", chat, `{"stream_options":{},"stream_options":{"include_usage":true},"stream":true}`, ``},
		{"asked", chat, `{"stream":true,"stream_options":{"include_usage":true}}`, ``},
		{"refused", chat, `{"stream":true,"stream_options":{"include_usage":false}}`, `{"stream":true,"stream_options":{"include_usage":true}}`},
		{"nonsense", chat, `{"stream":true,"stream_options":{"include_usage":"yes"}}`, ``},
		{"more nonsense", chat, `{"stream":true,"stream_options":[]}`, ``},
		{"a string", chat, `{"stream":true,"stream_options":"null"}`, ``},
		{"not streamed", chat, `{"stream":false}`, ``},
		{"silent", chat, `{"model":"m"}`, ``},
		{"Mistral", Endpoint{Provider: Mistral, API: Chat}, `{"stream":true}`, ``},
		{"responses", Endpoint{Provider: OpenAI, API: Responses}, `{"stream":true}`, ``},
		{"messages", Endpoint{Provider: Anthropic, API: Messages}, `{"stream":true}`, ``},
		{"Ollama", Endpoint{Provider: Ollama, API: OllamaChat}, `{"stream":true}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := []byte(c.body)
			r, err := c.to.Read(body)
			if err != nil {
				t.Fatal(err)
			}
			pieces, ok := r.AskUsage(body)
			asking := slices.Concat(pieces...)
			if string(asking) != c.want || ok != (c.want != "") {
				t.Fatalf("%s becomes %s, %v: want %s", c.body, asking, ok, c.want)
			}
			if string(body) != c.body {
				t.Errorf("%s was changed to %s", c.body, body)
			}
			if !ok {
				return
			}
			if again, err := c.to.Read(asking); err != nil || !again.UsageAsked || again.Prompt != r.Prompt || !json.Valid(asking) {
				t.Errorf("%s is %+v, %v", asking, again, err)
			}
			if _, ok := r.AskUsage(body[1:]); ok {
				t.Error("another body was changed")
			}
		})
	}
}

// textsOf returns the texts that a tokenizer is given.
func textsOf(r Request, body []byte) (texts []string) {
	r.CountWith(body, func(_, text string) int {
		texts = append(texts, text)
		return 0
	})
	return texts
}

func TestCountWith(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"lost"}],"messages":[
		{"role":"system","content":"Be \"brief\".\n"},
		{"role":"user","content":[{"type":"text","text":"caf\u00e9 \ud83d\ude00"},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]},
		{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}],
		"tools":[{"type":"function","strict":true}]}`)
	r, err := Endpoint{Provider: OpenAI, API: Chat}.Read(body)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Be \"brief\".\n", "café 😀", "f", `{"a":1}`, "type", "function", "strict", "true"}
	if got := textsOf(r, body); !slices.Equal(got, want) {
		t.Errorf("the texts are %q: want %q", got, want)
	}
	var models []string
	r.CountWith(body, func(model, text string) int {
		models = append(models, model)
		return 100
	})
	others := 3*tokensPerMessage + tokensPerReply + tokensPerTool + openAIImages.unknown
	if r.Prompt != 100*len(want)+others || len(slices.Compact(models)) != 1 || models[0] != "m" {
		t.Errorf("a tokenizer counts %d for %q: want %d", r.Prompt, models, 100*len(want)+others)
	}
}

func TestReadAllocatesTheModelOnly(t *testing.T) {
	for _, size := range []int{1 << 10, 100 << 10} {
		body := chatBody(size)
		if n := testing.AllocsPerRun(20, func() {
			if _, err := (Endpoint{Provider: OpenAI, API: Chat}).Read(body); err != nil {
				t.Error(err)
			}
		}); n > 1 {
			t.Errorf("%d bytes cost %v allocations", len(body), n)
		}
	}
}

func TestReadKeepsNoBody(t *testing.T) {
	body := []byte(`{"model":"gpt-4o","stream":true}`)
	r, err := Endpoint{API: Chat}.Read(body)
	if err != nil {
		t.Fatal(err)
	}
	copy(body, bytes.Repeat([]byte("x"), len(body)))
	if r.Model != "gpt-4o" {
		t.Errorf("the model is %q once the body has another use", r.Model)
	}
}

// Of a bound that an object has twice, under one name or two, the larger counts: servers differ in
// which they use.
func TestTheLargerOfTwoBoundsCounts(t *testing.T) {
	for body, api := range map[string]API{
		`{"inferenceConfig":{"maxTokens":5000,"maxTokens":1}}`:                Converse,
		`{"inferenceConfig":{"maxTokens":1,"maxTokens":5000}}`:                Converse,
		`{"textGenerationConfig":{"maxTokenCount":5000,"maxTokenCount":1}}`:   Invoke,
		`{"generationConfig":{"maxOutputTokens":5000,"max_output_tokens":1}}`: Generate,
		`{"options":{"num_predict":5000,"num_predict":1},"stream":false}`:     OllamaChat,
	} {
		if r, err := (Endpoint{API: api, Model: "m"}).Read([]byte(body)); err != nil || r.MaxOutput != 5000 {
			t.Errorf("%s: %d, %v", body, r.MaxOutput, err)
		}
	}
}

func TestReadTier(t *testing.T) {
	chat, converse := Endpoint{Provider: OpenAI, API: Chat}, Endpoint{Provider: Bedrock, API: Converse, Model: "m"}
	for _, c := range []struct {
		to         Endpoint
		body, tier string
		wrong      bool
	}{
		{chat, `{}`, "", false},
		{chat, `{"service_tier":"auto"}`, "", false},
		{chat, `{"service_tier":"default"}`, "", false},
		{chat, `{"service_tier":null}`, "", false},
		{chat, `{"service_tier":"flex"}`, "flex", false},
		{chat, `{"service_tier":"fl\u0065x"}`, "flex", false},
		{chat, `{"service_tier":7}`, "", true},
		{chat, `{"service_tier":["flex"]}`, "", true},
		{chat, `{"Service_Tier":"flex"}`, "", true},
		{chat, `{"service_tier":"priority","service_tier":"flex"}`, "flex", true},
		{Endpoint{Provider: Anthropic, API: Messages}, `{"service_tier":"standard_only"}`, "", false},
		{Endpoint{Provider: Anthropic, API: Messages}, `{"speed":"fast","service_tier":"auto"}`, "fast", false},
		{Endpoint{Provider: Anthropic, API: Messages}, `{"service_tier":"flex","speed":"fast"}`, "fast", false},
		{Endpoint{Provider: Anthropic, API: Messages}, `{"speed":"standard"}`, "", false},
		{Endpoint{Provider: Anthropic, API: Messages}, `{"speed":2}`, "", true},
		{Endpoint{Provider: Anthropic, API: Messages}, `{"Speed":"fast"}`, "", true},
		{chat, `{"speed":1.5}`, "", false},
		{Endpoint{Provider: Gemini, API: Generate, Model: "g"}, `{"serviceTier":"PRIORITY"}`, "priority", false},
		{converse, `{"serviceTier":{"type":"priority"}}`, "priority", false},
		{converse, `{"serviceTier":{"x":["flex"],"type":"default"}}`, "", false},
		{converse, `{"serviceTier":{"type":{}}}`, "", true},
		{Endpoint{Provider: OpenAI, API: Embeddings}, `{"service_tier":{"a":1}}`, "", false},
	} {
		r, err := c.to.Read([]byte(c.body))
		if err != nil || r.Tier != c.tier || (r.Wrong != "") != c.wrong {
			t.Errorf("%s: tier %q, wrong %q, error %v; want tier %q, wrong %t", c.body, r.Tier, r.Wrong, err, c.tier, c.wrong)
		}
	}
}
