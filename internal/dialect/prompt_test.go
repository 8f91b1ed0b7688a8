package dialect

import (
	"fmt"
	"strings"
	"testing"
)

const weatherSchema = `{"type":"object","properties":{"location":{"type":"string","description":"The city and state, e.g. San Francisco, CA"}},"required":["location"]}`

// TestPromptKnown compares estimates with the counts that providers publish for these requests.
func TestPromptKnown(t *testing.T) {
	for _, c := range []struct {
		name   string
		to     Endpoint
		body   string
		tokens int
		within float64 // a factor
	}{
		{
			"OpenAI chat", Endpoint{Provider: OpenAI, API: Chat},
			`{"model":"gpt-4o","messages":[{"role":"developer","content":"You are a helpful assistant."},{"role":"user","content":"Hello!"}]}`,
			19, 1.1,
		},
		{
			"OpenAI chat with a tool", Endpoint{Provider: OpenAI, API: Chat},
			`{"model":"gpt-4o","messages":[{"role":"user","content":"What is the weather like in Boston today?"}],"tool_choice":"auto",
			"tools":[{"type":"function","function":{"name":"get_current_weather","description":"Get the current weather in a given location",
			"parameters":{"type":"object","properties":{"location":{"type":"string","description":"The city and state, e.g. San Francisco, CA"},
			"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["location"]}}}]}`,
			82, 1.25,
		},
		{
			"OpenAI chat with an image", Endpoint{Provider: OpenAI, API: Chat},
			`{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"text","text":"What's in this image?"},
			{"type":"image_url","image_url":{"url":"https://example.com/wisconsin-boardwalk.jpg"}}]}],"max_tokens":300}`,
			1117, 1.05,
		},
		{
			"OpenAI responses", Endpoint{Provider: OpenAI, API: Responses},
			`{"model":"gpt-4.1","input":"Tell me a three sentence bedtime story about a unicorn."}`,
			36, 1.8,
		},
		{
			"OpenAI completions", Endpoint{Provider: OpenAI, API: Completions},
			`{"model":"gpt-3.5-turbo-instruct","prompt":"Say this is a test","max_tokens":7,"temperature":0}`,
			5, 1.01,
		},
		{
			"OpenAI embeddings", Endpoint{Provider: OpenAI, API: Embeddings},
			`{"input":"The food was delicious and the waiter...","model":"text-embedding-ada-002","encoding_format":"float"}`,
			8, 1.3,
		},
		{
			"Anthropic", Endpoint{Provider: Anthropic, API: Messages},
			`{"model":"claude-opus-4-6","max_tokens":1024,"system":"You are a scientist","messages":[{"role":"user","content":"Hello, Claude"}]}`,
			14, 1.5,
		},
		{
			"Anthropic with a tool", Endpoint{Provider: Anthropic, API: Messages},
			`{"model":"claude-opus-4-6","max_tokens":1024,"tools":[{"name":"get_weather","description":"Get the current weather in a given location",
			"input_schema":` + weatherSchema + `}],"messages":[{"role":"user","content":"What's the weather like in San Francisco?"}]}`,
			403, 1.1,
		},
		{
			"Gemini", Endpoint{Provider: Gemini, API: Generate},
			`{"contents":[{"role":"user","parts":[{"text":"The quick brown fox jumps over the lazy dog."}]}]}`,
			10, 2,
		},
		{
			"Ollama", Endpoint{Provider: Ollama, API: OllamaGenerate},
			`{"model":"llama3.2","prompt":"Why is the sky blue?","stream":false}`,
			26, 2.2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := c.to.Read([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if got, known := float64(r.Prompt), float64(c.tokens); got > known*c.within || got < known/c.within {
				t.Errorf("the prompt is thought to be %d tokens: it is %d", r.Prompt, c.tokens)
			}
		})
	}
}

// TestPromptStructure lists what counts. A text of four letters is one token.
func TestPromptStructure(t *testing.T) {
	const message, reply, tool = tokensPerMessage, tokensPerReply, tokensPerTool
	chat := Endpoint{Provider: OpenAI, API: Chat}
	responses := Endpoint{Provider: OpenAI, API: Responses}
	messages := Endpoint{Provider: Anthropic, API: Messages}
	gemini := Endpoint{Provider: Gemini, API: Generate, Model: "g"}
	for _, c := range []struct {
		name string
		to   Endpoint
		body string
		want int
	}{
		{"one message", chat, `{"messages":[{"role":"user","content":"abcd"}]}`, 1 + message + reply},
		{"rounded up", chat, `{"messages":[{"role":"user","content":"abcde"}]}`, 2 + message + reply},
		{"escapes", chat, `{"messages":[{"role":"user","content":"\n\t\"\\\u0041\/bc"}]}`, 2 + message + reply},
		{"escapes beyond ASCII", chat, `{"messages":[{"role":"user","content":"\u00e9\u00E9\ud83d\ude00"}]}`, 2 + message + reply},
		{"half a pair", chat, `{"messages":[{"role":"user","content":"\ud83d\u0041"}]}`, 1 + message + reply},
		{"no content", chat, `{"messages":[{"role":"assistant","content":null}]}`, message + reply},
		{"names count, ids do not", chat, `{"messages":[{"role":"tool","tool_call_id":"call_abcdefgh","name":"abcd","content":"abcd"}]}`, 2 + message + reply},
		{"parts", chat, `{"messages":[{"role":"user","content":[{"type":"text","text":"abcd"},{"type":"text","text":"efgh"}]}]}`, 2 + message + reply},
		{"calls", chat, `{"messages":[{"role":"assistant","tool_calls":[{"id":"call_1","index":0,"type":"function","function":{"name":"abcd","arguments":"{\"a\":1}"}}]}]}`, 3 + message + reply},
		{"the last list", chat, `{"messages":[{"content":"abcd"},{"content":"abcd"}],"messages":[{"content":"abcd"}]}`, 1 + message + reply},
		{"settings", chat, `{"model":"abcd","user":"abcd","metadata":{"abcd":"abcd"},"stop":["abcd"],"logit_bias":{"50256":-100},"tool_choice":"auto","seed":7}`, 0},
		{"extras of Groq, Mistral, OpenRouter, vLLM, llama.cpp", chat, `{"service_tier":"flex","safe_prompt":true,"provider":{"order":["abcd"]},"models":["abcd"],"plugins":[{"id":"web"}],"guided_json":{"a":"b"},"chat_template_kwargs":{"enable_thinking":false},"grammar":"root ::= [a-z]","cache_prompt":true,"messages":[{"content":"abcd"}]}`, 1 + message + reply},
		{"no tools", chat, `{"tools":[]}`, 0},
		{"tools", chat, `{"tools":[{"type":"abcd"},{"type":"abcd"}]}`, 4 + 2*tool},
		{"numbers in tools", chat, `{"tools":[{"minimum":1000,"deep":[true,null]}]}`, 2 + 1 + 1 + 1 + 1 + tool},
		{"functions", chat, `{"functions":[{"name":"abcd"}]}`, 2 + tool},
		{"a schema", chat, `{"response_format":{"type":"json_schema"}}`, 4},
		{"an image by its address", chat, `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]}`, openAIImages.unknown + message + reply},
		{"an image at a glance", chat, `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png","detail":"low"}}]}]}`, 85 + message + reply},
		{"a glance told first", chat, `{"messages":[{"content":[{"type":"image_url","image_url":{"detail":"low","url":"https://example.com/a.png"}}]}]}`, 85 + message + reply},
		{"a glance at nothing", chat, `{"messages":[{"content":[{"detail":"low"}]}]}`, message + reply},
		{"no glance at Anthropic's", messages, `{"messages":[{"content":[{"detail":"low","image_url":"https://example.com/a.png"}]}]}`, anthropicMaxImage + message + reply},
		{"Mistral's images", Endpoint{Provider: Mistral, API: Chat}, `{"messages":[{"content":[{"type":"image_url","image_url":"https://example.com/a.png"}]}]}`, openAIImages.unknown + message + reply},
		{"a file", chat, `{"messages":[{"content":[{"type":"file","file":{"file_id":"file-1"}}]}]}`, openAIImages.unknown + message + reply},
		{"an address in a text", chat, `{"messages":[{"content":"https://example.com/a.png!!!"}]}`, 7 + message + reply},

		{"a prompt", responses, `{"input":"abcd","instructions":"abcd"}`, 2 + 2*message + reply},
		{"items", responses, `{"input":[{"role":"user","content":"abcd"},{"type":"message","role":"assistant","status":"completed","id":"msg_1","content":[{"type":"output_text","text":"abcd","annotations":[{"type":"url_citation","url":"https://example.com","title":"abcd"}]}]}]}`, 2 + 2*message + reply},
		{"calls and outputs", responses, `{"input":[{"type":"function_call","call_id":"c","name":"abcd","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"abcd"}]}`, 3 + 2*message + reply},
		{"images of responses", responses, `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png","detail":"low"},{"type":"input_file","file_url":"https://example.com/a.pdf"}]}]}`, 85 + openAIImages.unknown + message + reply},
		{"a format", responses, `{"text":{"format":{"type":"text"}}}`, 1 + 2 + 1},
		{"no prompt", responses, `{"input":null,"previous_response_id":"resp_1"}`, 0},

		{"embeddings", Endpoint{API: Embeddings}, `{"input":"abcd"}`, 1},
		{"many embeddings", Endpoint{API: Embeddings}, `{"input":["abcd","a",""]}`, 2},
		{"embeddings of tokens", Endpoint{API: Embeddings}, `{"input":[1,22,333]}`, 3},
		{"many embeddings of tokens", Endpoint{API: Embeddings}, `{"input":[[1,22],[333, 4444]]}`, 4},
		{"completions", Endpoint{API: Completions}, `{"prompt":["abcd","abcd"],"suffix":"abcd"}`, 3},
		{"completions of tokens", Endpoint{API: Completions}, `{"prompt":[1,2,3]}`, 3},

		{"system blocks", messages, `{"system":[{"type":"text","text":"abcd","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[{"role":"user","content":"abcd"}]}`, 2 + 2*message + reply},
		{"uses of tools", messages, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"abcd","input":{"city":"Rome"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"abcd"}]}]}]}`, 4 + 2*message + reply},
		{"thoughts", messages, `{"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"abcd","signature":"EqQBCgIYAhIM"}]}]}`, 1 + message + reply},
		{"sources", messages, `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},{"type":"document","source":{"type":"file","file_id":"file_1"}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"abcd"}}]}]}`, 2*anthropicMaxImage + 1 + message + reply},
		{"results of a search", messages, `{"messages":[{"content":[{"type":"web_search_result","url":"http://a.bc","title":"abcd"}]}]}`, 3 + 1 + message + reply},
		{"tools of Anthropic", messages, `{"tools":[{"name":"abcd"},{"name":"abcd"}]}`, 4 + 2*tool + anthropicToolUse},

		{"contents", gemini, `{"systemInstruction":{"parts":[{"text":"abcd"}]},"contents":[{"role":"user","parts":[{"text":"abcd"},{"fileData":{"mimeType":"video/mp4","fileUri":"https://example.com/a"}}]}]}`, 2 + geminiUnknownImage + 2*message + reply},
		{"one content", gemini, `{"contents":{"parts":{"text":"abcd"}},"system_instruction":"abcd"}`, 2 + 2*message + reply},
		{"functions of Gemini", gemini, `{"tools":[{"functionDeclarations":[{"name":"abcd"}]}]}`, 5 + 1 + 1 + tool},
		{"calls of Gemini", gemini, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"abcd","args":{"abcd":1}},"thoughtSignature":"abcd"}]},{"parts":[{"functionResponse":{"name":"abcd","response":{"abcd":"abcd"}}}]}]}`, 3 + 3 + 2*message + reply},
		{"a schema of Gemini", gemini, `{"generationConfig":{"responseMimeType":"application/json","stopSequences":["abcd"],"responseSchema":{"type":"abcd"}}}`, 2},

		{"Cohere chat", Endpoint{Provider: Cohere, API: CohereChat}, `{"messages":[{"role":"user","content":[{"type":"text","text":"abcd"}]}],"documents":["abcd",{"id":"abcd"}]}`, 1 + 1 + 2 + message + reply},
		{"Cohere's first version", Endpoint{Provider: Cohere, API: CohereChat}, `{"message":"abcd","preamble":"abcd","chat_history":[{"role":"USER","message":"abcd"}],"conversation_id":"abcd"}`, 3 + 3*message + reply},
		{"Cohere's embeddings", Endpoint{Provider: Cohere, API: CohereEmbed}, `{"input_type":"search_document","texts":["abcd","abcd"]}`, 2},
		{"Cohere's ranks", Endpoint{Provider: Cohere, API: CohereRerank}, `{"query":"abcd","documents":["abcd","abcd"],"top_n":2}`, 3},
		{"Converse", Endpoint{Provider: Bedrock, API: Converse}, `{"system":[{"text":"abcd"},{"cachePoint":{"type":"default"}}],"messages":[{"role":"user","content":[{"text":"abcd"},{"image":{"format":"png","source":{"s3Location":{"uri":"s3://a/b"}}}},{"toolUse":{"toolUseId":"tooluse_1","name":"abcd","input":{"abcd":"abcd"}}}]}],"additionalModelRequestFields":{"a":"abcd"}}`, 2 + 3 + anthropicMaxImage + 2*message + reply},
		{"tools of Converse", Endpoint{Provider: Bedrock, API: Converse}, `{"toolConfig":{"tools":[{"toolSpec":{"name":"abcd"}}]}}`, 2 + 2 + 1 + 1},
		{"Titan", Endpoint{Provider: Bedrock, API: Invoke}, `{"inputText":"abcd"}`, 1},
		{"Ollama chat", Endpoint{Provider: Ollama, API: OllamaChat}, `{"messages":[{"role":"user","content":"abcd"}],"format":"json","keep_alive":"5m"}`, 1 + 1 + message + reply},
		{"Ollama generate", Endpoint{Provider: Ollama, API: OllamaGenerate}, `{"prompt":"abcd","system":"abcd","template":"abcd","suffix":"abcd","context":[1,2,3],"raw":true}`, 4 + 3 + 2*message + reply},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := c.to.Read([]byte(c.body))
			if err != nil || r.Prompt != c.want {
				t.Errorf("%s is %d tokens, %v: want %d", c.body, r.Prompt, err, c.want)
			}
			r.CountWith([]byte(c.body), func(_, text string) int { return (len(text) + 3) / 4 })
			if r.Prompt != c.want {
				t.Errorf("%s is %d tokens when its texts are counted: want %d", c.body, r.Prompt, c.want)
			}
		})
	}
}

// A long text is not taken for an image or a file.
func TestPromptOfLongTexts(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("a", 10_000),
		strings.Repeat("lorem ipsum ", 1000),
		strings.Repeat("0123456789abcdef", 1000),
		"data: " + strings.Repeat("x", 1000),
		"data:text/plain;base64, " + strings.Repeat("some words ", 1000),
		"data:,abcd",
		"data:",
		strings.Repeat("漢字", 1000),
	} {
		r, err := Endpoint{API: Embeddings}.Read(fmt.Appendf(nil, `{"input":"%s"}`, text))
		if want := (len(text) + 3) / 4; err != nil || r.Prompt != want {
			t.Errorf("%.30s… is %d tokens, %v: want %d", text, r.Prompt, err, want)
		}
	}
}
