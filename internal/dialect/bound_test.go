package dialect

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

// mostOf reads a body, and returns what it can use of a model with a window of 100,000 tokens whose answers have 4,000.
func mostOf(t *testing.T, e Endpoint, body string) (input, output int) {
	t.Helper()
	r, err := e.Read([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	input, output, ok := r.Most(llm.Maxima{Context: 100_000, Output: 4_000})
	if !ok {
		t.Errorf("%s has no bound", body)
	}
	return input, output
}

// Each dialect's names for the most of an answer are known, and for the number of answers.
func TestMostOutputOfEachDialect(t *testing.T) {
	for _, c := range []struct {
		e    Endpoint
		body string
		want int
	}{
		{Endpoint{OpenAI, Chat, "", false}, `{"model":"m","messages":[]}`, 4_000},
		{Endpoint{OpenAI, Chat, "", false}, `{"model":"m","max_tokens":7}`, 7},
		{Endpoint{OpenAI, Chat, "", false}, `{"model":"m","max_completion_tokens":7,"max_tokens":9,"n":3}`, 27},
		{Endpoint{OpenAI, Chat, "", false}, `{"model":"m","n":3}`, 12_000},
		{Endpoint{OpenAI, Chat, "", false}, `{"model":"m","max_tokens":9000}`, 9_000}, // the request's word counts
		{Endpoint{OpenAI, Chat, "", false}, `{"model":"m","max_tokens":10,"prediction":{"type":"content","content":"abc"}}`, 10 + 34},
		{Endpoint{OpenAI, Chat, "", false}, `{"model":"m","max_tokens":-1}`, 4_000},
		{Endpoint{OpenAI, Chat, "", false}, `{"model":"m","max_tokens":1e308,"n":1e308}`, maxMost},
		{Endpoint{OpenAI, Responses, "", false}, `{"model":"m","max_output_tokens":7}`, 7},
		{Endpoint{OpenAI, Completions, "", false}, `{"model":"m","max_tokens":7,"n":2,"best_of":5,"prompt":["a","b"]}`, 70},
		{Endpoint{OpenAI, Embeddings, "", false}, `{"model":"m","input":"a","max_tokens":7}`, 0},
		{Endpoint{Azure, Chat, "m", false}, `{"max_completion_tokens":7}`, 7},
		{Endpoint{Groq, Chat, "", false}, `{"model":"m","max_completion_tokens":7}`, 7},
		{Endpoint{OpenRouter, Chat, "", false}, `{"model":"m","max_tokens":7}`, 7},
		{Endpoint{Mistral, Chat, "", false}, `{"model":"m","max_tokens":7,"n":2}`, 14},
		{Endpoint{Compatible, Chat, "", false}, `{"model":"m","max_tokens":7,"n_predict":700}`, 700},
		{Endpoint{Compatible, Chat, "", false}, `{"model":"m","max_tokens":7,"n_predict":-1}`, 4_000},
		{Endpoint{Compatible, Chat, "", false}, `{"model":"m","max_tokens":7,"max_completion_tokens":-1}`, 4_000},
		{Endpoint{Compatible, Chat, "", false}, `{"model":"m","max_tokens":0,"max_completion_tokens":7}`, 4_000},
		{Endpoint{Compatible, Chat, "", false}, `{"model":"m","max_tokens":7,"max_completion_tokens":null}`, 7},
		{Endpoint{Anthropic, Messages, "", false}, `{"model":"m","max_tokens":7,"thinking":{"type":"enabled","budget_tokens":5}}`, 7},
		{Endpoint{Gemini, Generate, "m", false}, `{"generationConfig":{"maxOutputTokens":7,"candidateCount":2}}`, 14},
		{Endpoint{Vertex, Generate, "m", false}, `{"generation_config":{"max_output_tokens":7}}`, 7},
		{Endpoint{Gemini, Interactions, "", false}, `{"model":"m","generation_config":{"max_output_tokens":7}}`, 7},
		{Endpoint{Cohere, CohereChat, "", false}, `{"model":"m","max_tokens":7}`, 7},
		{Endpoint{Cohere, CohereRerank, "", false}, `{"model":"m","query":"a","documents":["b"]}`, 0},
		{Endpoint{Bedrock, Converse, "m", false}, `{"inferenceConfig":{"maxTokens":7}}`, 7},
		{Endpoint{Bedrock, Converse, "m", false}, `{"inferenceConfig":{"max_new_tokens":7}}`, 4_000},
		{Endpoint{Bedrock, Converse, "m", false}, `{"inferenceConfig":{"maxTokens":7,"maxTokens":null}}`, 4_000},
		{Endpoint{Bedrock, Converse, "m", false}, `{"inferenceConfig":{"maxTokens":7},"additionalModelRequestFields":{"max_tokens":9000}}`, 4_000},
		{Endpoint{Bedrock, Converse, "m", false}, `{"inferenceConfig":{"maxTokens":7},"additionalModelRequestFields":{"top_k":9}}`, 7},
		{Endpoint{Bedrock, Invoke, "m", false}, `{"max_tokens":7,"num_generations":3}`, 21},
		{Endpoint{Bedrock, Invoke, "m", false}, `{"max_gen_len":7}`, 7},
		{Endpoint{Bedrock, Invoke, "m", false}, `{"textGenerationConfig":{"maxTokenCount":7}}`, 7},
		{Endpoint{Ollama, OllamaChat, "", false}, `{"model":"m","options":{"num_predict":7}}`, 7},
		{Endpoint{Ollama, OllamaGenerate, "", false}, `{"model":"m","options":{"num_predict":-2}}`, 4_000},
		{Endpoint{Ollama, OllamaChat, "", false}, `{"model":"m","options":{"num_predict":7,"num_predict":-1}}`, 4_000},
		{Endpoint{Gemini, Generate, "m", false}, `{"generationConfig":{"maxOutputTokens":7,"candidateCount":3,"candidateCount":null}}`, 21},
		{Endpoint{Mistral, Conversations, "", false}, `{"model":"m","completion_args":{"max_tokens":7}}`, 7},
	} {
		if _, got := mostOf(t, c.e, c.body); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.e.Provider, c.body, got, c.want)
		}
	}
}

// A prompt that the body has in full is bounded by the body, and any other by the window.
func TestMostInput(t *testing.T) {
	const window = 100_000
	image := base64.StdEncoding.EncodeToString([]byte("\x89PNG" + strings.Repeat("x", 3000)))
	text := strings.Repeat("words ", 100)
	chat, messages, responses := Endpoint{OpenAI, Chat, "gpt-4o", false}, Endpoint{Anthropic, Messages, "m", false}, Endpoint{OpenAI, Responses, "gpt-4o", false}
	gemini, converse := Endpoint{Gemini, Generate, "m", false}, Endpoint{Bedrock, Converse, "m", false}
	content := func(part string) string { return `{"messages":[{"role":"user","content":[` + part + `]}]}` }
	for _, c := range []struct {
		name     string
		e        Endpoint
		body     string
		min, max int // max is 0 for the window
	}{
		{"a text", chat, content(`{"type":"text","text":"` + text + `"}`), 600, 800},
		{"a text that looks like an image", chat, content(`{"type":"text","text":"` + image + `"}`), 4000, 4300},
		{"a text under an unknown key", chat, content(`{"type":"text","note":"` + image + `"}`), 4000, 4300},
		{"an image", chat, content(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}}`), boundImageGPT4, boundImageGPT4 + 300},
		{"a link to an image", chat, content(`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`), boundImageGPT4, boundImageGPT4 + 300},
		{"two images", messages, content(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}},{"source":{"url":"https://example.com/a.png","type":"url"},"type":"image"}`), 2 * boundImageAnthropic, 2*boundImageAnthropic + 1200},
		{"Gemini's image", gemini, `{"contents":[{"parts":[{"inlineData":{"data":"` + image + `","mimeType":"image/png"}}]}]}`, boundImageGemini, boundImageGemini + 300},
		{"Bedrock's image", converse, content(`{"image":{"format":"png","source":{"bytes":"` + image + `"}}}`), boundImageAnthropic, boundImageAnthropic + 900},
		{"Ollama's image", Endpoint{Ollama, OllamaChat, "m", false}, `{"messages":[{"role":"user","content":"a","images":["` + image + `"]}]}`, boundImageOpenAI, boundImageOpenAI + 300},
		{"a document of text", messages, content(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + text + `"}}`), 600, 1500},
		{"a document of text that looks like an image", messages, content(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + image + `"}}`), 4000, 5000},
		{"a PDF", messages, content(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + image + `"}}`), 0, 0},
		{"a PDF that is an image, too", messages, content(`{"type":"document","type":"image","source":{"type":"base64","media_type":"application/pdf","data":"` + image + `"}}`), 0, 0},
		{"a PDF by its address", messages, content(`{"type":"document","source":{"type":"url","url":"https://example.com/a"}}`), 0, 0},
		{"Gemini's video", gemini, `{"contents":[{"parts":[{"fileData":{"fileUri":"https://example.com/a","mimeType":"video/mp4"}}]}]}`, 0, 0},
		{"Bedrock's document", converse, content(`{"document":{"format":"txt","name":"a","source":{"bytes":"` + image + `"}}}`), 0, 0},
		{"sound", chat, content(`{"type":"input_audio","input_audio":{"data":"` + image + `","format":"wav"}}`), 0, 0},
		{"sound that is stored", chat, `{"messages":[{"role":"assistant","audio":{"id":"a"}}]}`, 0, 0},
		{"a file that is stored", responses, `{"input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]}`, 0, 0},
		{"an item that is stored", responses, `{"input":[{"type":"item_reference","id":"i"}]}`, 0, 0},
		{"thoughts that are stored", responses, `{"input":[{"type":"reasoning","id":"r","summary":[]}]}`, 0, 0},
		{"thoughts that are encrypted", responses, `{"input":[{"type":"reasoning","id":"r","summary":[],"encrypted_content":"abc"}]}`, 0, 300},
		{"a template", responses, `{"prompt":{"id":"p"}}`, 0, 0},
		{"a conversation", responses, `{"conversation":"c","input":"a"}`, 0, 0},
		{"a cache", gemini, `{"cachedContent":"c"}`, 0, 0},
		{"a tool of the caller", chat, `{"tools":[{"type":"function","function":{"name":"f"}}]}`, 0, 1400},
		{"Anthropic's editor", messages, `{"tools":[{"type":"text_editor_20250728","name":"e"}]}`, 2048, 5000},
		{"a search", messages, `{"tools":[{"type":"web_search_20250305","name":"s"}]}`, 0, 0},
		{"a search, hidden", messages, `{"tools":[{"type":"custom","name":"s","type":"web_search_20250305"}]}`, 0, 0},
		{"OpenAI's search", responses, `{"tools":[{"type":"web_search"}]}`, 0, 0},
		{"OpenAI's search in a chat", chat, `{"web_search_options":{"user_location":null}}`, 0, 0},
		{"no search", chat, `{"web_search_options":null,"plugins":[]}`, 0, 300},
		{"Google's search", gemini, `{"tools":[{"googleSearch":{}}]}`, 0, 0},
		{"Gemini's functions", gemini, `{"tools":[{"functionDeclarations":[{"name":"f"}]}]}`, 0, 1400},
		{"Bedrock's search", converse, `{"toolConfig":{"tools":[{"systemTool":{"name":"nova_grounding"}}]}}`, 0, 0},
		{"servers of tools", messages, `{"mcp_servers":[{"url":"https://example.com"}]}`, 0, 0},
		{"an agent", Endpoint{Mistral, Chat, "m", false}, `{"agent_id":"a","messages":[]}`, 0, 0},
		{"a conversation of Mistral's", Endpoint{Mistral, Conversations, "m", false}, `{"inputs":"a"}`, 0, 0},
	} {
		got, _ := mostOf(t, c.e, c.body)
		if c.max == 0 && got != window {
			t.Errorf("%s: %d, want the window", c.name, got)
		}
		if c.max > 0 && (got < c.min || got > c.max) {
			t.Errorf("%s: %d, want %d to %d", c.name, got, c.min, c.max)
		}
	}
}

// Without a window nobody knows the most of a prompt that is not in the body.
func TestMostWithoutWindow(t *testing.T) {
	for body, want := range map[string]bool{
		`{"input":"a","max_output_tokens":7}`:                     true,
		`{"input":"a"}`:                                           false,
		`{"previous_response_id":"r","max_output_tokens":7}`:      false,
		`{"tools":[{"type":"web_search"}],"max_output_tokens":7}`: false,
		`{"input":[{"type":"message","role":"user","content":[{"type":"input_file","file_url":"u"}]}],"max_output_tokens":7}`: false,
	} {
		r, err := Endpoint{OpenAI, Responses, "m", false}.Read([]byte(body))
		if _, _, ok := r.Most(llm.Maxima{}); err != nil || ok != want {
			t.Errorf("%s: %v, %v, want %v", body, ok, err, want)
		}
	}
}

// What an estimator knows of a stored context bounds it, if the context cannot grow.
func TestMostOfStoredContext(t *testing.T) {
	for body, want := range map[string]int{
		`{"previous_response_id":"resp_1","input":"a"}`:                                 1200 + 45 + openAIOverhead,
		`{"conversation":"resp_1","input":"a"}`:                                         100_000,
		`{"previous_response_id":"resp_1","conversation":"other","input":"a"}`:          100_000,
		`{"previous_response_id":"` + strings.Repeat("r", maxWord+1) + `","input":"a"}`: 100_000,
	} {
		var e Estimator
		endpoint := Endpoint{OpenAI, Responses, "m", false}
		first, _ := endpoint.Read([]byte(`{"input":"b"}`))
		for _, id := range []string{"resp_1", "other", strings.Repeat("r", maxWord+1)} {
			e.LearnContext("p", &first, id, llm.Usage{Input: 1000, Output: 200, Exact: true})
		}
		r, err := endpoint.Read([]byte(body))
		e.Estimate("p", &r)
		if got, _, ok := r.Most(llm.Maxima{Context: 100_000, Output: 1}); err != nil || !ok || got != want {
			t.Errorf("%s: %d, %v, %v, want %d", body, got, ok, err, want)
		}
	}
}

// A tokenizer's count of the texts replaces their bytes.
func TestMostOfCountedPrompt(t *testing.T) {
	body := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 1000) + `"}]}`)
	r, err := Endpoint{OpenAI, Chat, "m", false}.Read(body)
	if err != nil {
		t.Fatal(err)
	}
	r.CountWith(body, func(_, text string) int { return len(text) / 5 })
	if got, _, _ := r.Most(llm.Maxima{Output: 1}); got != len(body)-5000+1000+openAIOverhead {
		t.Errorf("%d", got)
	}
}

// Of a request whose answer is bounded, no less is reserved because its prompt is long.
func TestMostIsNotLessThePrompt(t *testing.T) {
	body := `{"model":"m","max_tokens":8192,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 8000) + `"}]}`
	if _, output := mostOf(t, Endpoint{OpenAI, Chat, "", false}, body); output != 8192 {
		t.Errorf("%d", output)
	}
}

// Characters that a tokenizer makes longer before it counts them count as often, however they are written.
func TestMostOfExpandedCharacters(t *testing.T) {
	for _, text := range []string{strings.Repeat("\ufdfa", 100), strings.Repeat(`\ufdfa`, 100)} {
		got, _ := mostOf(t, Endpoint{Anthropic, Messages, "m", false}, `{"messages":[{"role":"user","content":"`+text+`"}]}`)
		if got < 33*100 {
			t.Errorf("%.12s: %d tokens", text, got)
		}
	}
	for _, c := range []struct {
		text string
		more int
		wide bool
	}{
		{"", 0, false}, {strings.Repeat("a", 200), 0, false}, {strings.Repeat("a", 200) + "é漢字かな😀", 0, true},
		{"½ ﷺ", 33, true}, {"\xff\xc0\x80\xed\xa0\x80", 12, true}, {"漢\xe6\xbc", 4, true}, {"aaaaaaaaaaaaaaa\u1160\U0001d160", 8, true},
	} {
		if more, wide := expansion([]byte(c.text)); more != c.more || wide != c.wide {
			t.Errorf("%q: %d, %v, want %d, %v", c.text, more, wide, c.more, c.wide)
		}
	}
}

// Nothing overflows, and nothing is below zero.
func FuzzMost(f *testing.F) {
	for _, body := range []string{`{"max_tokens":1e308,"n":1e308,"best_of":9}`, `{"messages":[{"type":"image","source":{"data":""}}]}`, `{"tools":[{"type":"x"}]}`, `{"prediction":1}`} {
		f.Add([]byte(body), math.MaxInt, -5)
	}
	f.Fuzz(func(t *testing.T, body []byte, window, output int) {
		for _, api := range []API{Chat, Completions, Messages, Responses, Generate, Converse, Invoke, CohereChat, CohereRerank, OllamaChat, Embeddings} {
			r, _ := Endpoint{Compatible, api, "m", false}.Read(body)
			in, out, ok := r.Most(llm.Maxima{Context: window, Output: output})
			if in < 0 || out < 0 || in > maxMost || out > maxMost || ok && r.API.Generates() && out == 0 {
				t.Fatalf("%s: %d, %d, %v", api, in, out, ok)
			}
		}
	})
}

func BenchmarkReadWide(b *testing.B) {
	for name, text := range map[string]string{"ascii": "It was the best of times. ", "han": "它是最好的时代，", "kana": "それはさいこうのときであり", "cyrillic": "Это было лучшее из времён, "} {
		body := fmt.Appendf(nil, `{"messages":[{"role":"user","content":"%s"}]}`, strings.Repeat(text, 1000))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := (Endpoint{Anthropic, Messages, "m", false}).Read(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a call has read of a stored context is no bound of it if the provider may have left out a part, or reads more of
// it for another model.
func TestStoredContextsAreNotForgotten(t *testing.T) {
	const stored, window = 400_000, 1_000_000
	read := func(body string) *Request {
		r, err := Endpoint{OpenAI, Responses, "m", false}.Read([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return &r
	}
	estimator := new(Estimator)
	estimator.LearnContext("p", read(`{"input":"a"}`), "first", llm.Usage{Input: stored - 10, Output: 10, Exact: true})
	estimator.LearnContext("p", read(`{"previous_response_id":"first","truncation":"auto"}`), "short", llm.Usage{Input: 16_000, Output: 10, Exact: true})
	estimator.LearnContext("p", read(`{"previous_response_id":"first","truncation":"disabled"}`), "second", llm.Usage{Input: 300_000, Output: 10, Exact: true})
	for id, want := range map[string]int{"first": stored, "short": window, "second": 300_010} {
		r := read(`{"previous_response_id":"` + id + `","input":"a"}`)
		estimator.Estimate("p", r)
		if most, _, _ := r.Most(llm.Maxima{Context: window, Output: 1}); most < want || most > want+200 {
			t.Errorf("%s: a prompt of %d at most, want %d and what the body has", id, most, want)
		}
	}
}
