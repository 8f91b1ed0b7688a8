package scenarios

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// wireForm is how calls of one provider's API are written.
type wireForm struct {
	name     string
	settings string // of the provider, beside base_url and key; it is named as the first part of path
	path     string // MODEL stands for the model
	stream   string // the path of streams, if that is another
	as       llm.Provider
	model    string

	// published is the most tokens of one answer of the model, as its provider publishes it, or else its context
	// window; or, of a model that nobody has published anything of, what it writes unless the call has a bound.
	// 0: calls must have a bound.
	published int

	bound        string // the field that bounds the answer
	answers      string // the field with the number of answers; empty: there is one
	body         func(p *plan) object
	writesCaches bool // its usage has tokens that were written to a cache
	reasons      bool // the model may reason, which no text of its streams shows
}

// object is a JSON object.
type object = map[string]any

// chatBody is the body of OpenAI's chat completions.
func chatBody(p *plan) object {
	return object{"model": p.budget.dialect.model, "stream": p.stream, "messages": []object{{"role": "user", "content": p.text}}}
}

// pathBody is chatBody where the path names the model.
func pathBody(p *plan) object {
	body := chatBody(p)
	delete(body, "model")
	return body
}

func geminiBody(p *plan) object {
	return object{"contents": []object{{"role": "user", "parts": []object{{"text": p.text}}}}, "generationConfig": object{}}
}

// dialects are all that the gateway reads and the mock speaks.
var dialects = []wireForm{
	{name: "openai", path: "/openai/v1/chat/completions", as: dialect.OpenAI, model: "gpt-4o", published: 16_384,
		bound: "max_completion_tokens", answers: "n", body: chatBody},
	{name: "responses", path: "/openai/v1/responses", as: dialect.OpenAI, model: "gpt-4o", published: 16_384,
		bound: "max_output_tokens", body: func(p *plan) object {
			return object{"model": p.budget.dialect.model, "stream": p.stream, "input": p.text}
		}},
	{name: "completions", path: "/openai/v1/completions", as: dialect.OpenAI, model: "gpt-3.5-turbo-instruct", published: 4_096,
		bound: "max_tokens", answers: "n", body: func(p *plan) object {
			return object{"model": p.budget.dialect.model, "stream": p.stream, "prompt": p.text}
		}},
	{name: "azure", settings: "kind: azure", path: "/azure/openai/deployments/MODEL/chat/completions?api-version=2024-10-21", as: dialect.Azure,
		model: "gpt-4o", published: 16_384, bound: "max_tokens", answers: "n", body: pathBody},
	{name: "anthropic", path: "/anthropic/v1/messages", as: dialect.Anthropic, model: "claude-sonnet-4-5", bound: "max_tokens", body: chatBody, writesCaches: true},
	{name: "gemini", path: "/gemini/v1beta/models/MODEL:generateContent", stream: "/gemini/v1beta/models/MODEL:streamGenerateContent?alt=sse",
		as: dialect.Gemini, model: "gemini-2.5-flash", published: 65_536, bound: "generationConfig.maxOutputTokens", answers: "generationConfig.candidateCount", body: geminiBody, reasons: true},
	{name: "vertex", settings: "kind: vertex", path: "/vertex/v1/projects/p/locations/l/publishers/google/models/MODEL:generateContent",
		stream: "/vertex/v1/projects/p/locations/l/publishers/google/models/MODEL:streamGenerateContent?alt=sse",
		as:     dialect.Vertex, model: "gemini-2.5-flash", published: 65_536, bound: "generationConfig.maxOutputTokens", answers: "generationConfig.candidateCount", body: geminiBody, reasons: true},
	{name: "mistral", settings: "kind: mistral", path: "/mistral/v1/chat/completions", as: dialect.Mistral, model: "mistral-large-latest", published: 131_072,
		bound: "max_tokens", answers: "n", body: chatBody},
	{name: "groq", settings: "kind: groq", path: "/groq/openai/v1/chat/completions", as: dialect.Groq, model: "llama-3.3-70b-versatile", published: 32_768,
		bound: "max_completion_tokens", body: chatBody},
	{name: "openrouter", settings: "kind: openrouter", path: "/openrouter/api/v1/chat/completions", as: dialect.OpenRouter, model: "openai/gpt-4o", published: 16_384,
		bound: "max_tokens", body: chatBody},
	{name: "cohere", settings: "kind: cohere", path: "/cohere/v2/chat", as: dialect.Cohere, model: "command-a-03-2025", published: 8_192, bound: "max_tokens", body: chatBody},
	{name: "converse", settings: "kind: bedrock", path: "/bedrock/model/MODEL/converse", stream: "/bedrock/model/MODEL/converse-stream", as: dialect.Bedrock,
		model: "anthropic.claude-sonnet-4-5-20250929-v1:0", published: 64_000, bound: "inferenceConfig.maxTokens", writesCaches: true,
		body: func(p *plan) object {
			return object{"messages": []object{{"role": "user", "content": []object{{"text": p.text}}}}, "inferenceConfig": object{}}
		}},
	{name: "invoke", settings: "kind: bedrock", path: "/bedrock/model/MODEL/invoke", stream: "/bedrock/model/MODEL/invoke-with-response-stream", as: dialect.Bedrock,
		model: "anthropic.claude-sonnet-4-5-20250929-v1:0", bound: "max_tokens", writesCaches: true,
		body: func(p *plan) object {
			return object{"anthropic_version": "bedrock-2023-05-31", "messages": []object{{"role": "user", "content": p.text}}}
		}},
	{name: "ollama", settings: "kind: ollama", path: "/ollama/api/chat", as: dialect.Ollama, model: "own-llama", published: 200_000, bound: "options.num_predict", body: func(p *plan) object {
		body := chatBody(p)
		body["options"] = object{}
		return body
	}},
	{name: "compatible", settings: "kind: compatible", path: "/compatible/v1/chat/completions", as: dialect.OpenAI, model: "own-model", published: 50_000, bound: "max_tokens", answers: "n", body: chatBody},
}

// provider returns the name of the dialect's provider in the configuration.
func (d *wireForm) provider() string {
	name, _, _ := strings.Cut(d.path[1:], "/")
	return name
}

// set sets a field of a body, or of an object in it.
func set(body object, field string, value any) {
	outer, inner, nested := strings.Cut(field, ".")
	if nested {
		set(body[outer].(object), inner, value)
		return
	}
	body[outer] = value
}

// raw returns the bytes of the call's request.
func (p *plan) raw() string {
	d := p.budget.dialect
	body, path := d.body(p), d.path
	if p.stream && d.stream != "" {
		path = d.stream
	}
	if p.most > 0 {
		set(body, d.bound, p.most)
	}
	if p.priority {
		set(body, "service_tier", "priority")
	}
	if p.answers > 1 {
		set(body, d.answers, p.answers)
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	head := fmt.Sprintf("X-Plan: %d\r\nAuthorization: Bearer %s\r\n", p.id, p.budget.key)
	if p.budget.run != "" {
		head += "X-Run-ID: " + p.budget.run + "\r\n"
	}
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		strings.ReplaceAll(path, "MODEL", d.model), head, len(text), text)
}

// scripts are texts that tokenizers cut in very different ways.
var scripts = map[string]string{
	"latin": "Once upon a time there was a budget that nobody could exceed. ", "cyrillic": "Жил-был бюджет, который никто не мог превысить. ",
	"greek": "Μια φορά κι έναν καιρό ήταν ένας προϋπολογισμός. ", "arabic": "كان يا ما كان ميزانية لا يتجاوزها أحد. ",
	"hebrew": "היה היה תקציב שאיש לא חרג ממנו. ", "devanagari": "एक समय की बात है, एक बजट था। ", "thai": "กาลครั้งหนึ่งมีงบประมาณที่ไม่มีใครใช้เกิน ",
	"chinese": "从前有一个没有人能超过的预算。", "japanese": "昔々、誰も超えられない予算がありました。", "korean": "옛날 옛적에 아무도 넘을 수 없는 예산이 있었다. ",
	"georgian": "იყო და არა იყო რა, იყო ბიუჯეტი. ", "amharic": "ከዕለታት አንድ ቀን አንድ በጀት ነበረ። ",
	"digits": "31415926535897932384626433832795", "base64": base64.StdEncoding.EncodeToString([]byte("\x00\xff\x10\x83\x10Q\x87 \x92\x8b0\xd3\x8fA\x14\x93QU")),
	"code": "for i:=0;i<n;i++{if a[i]!=b[i]{return!0}}\n\t", "emoji": "👩‍👩‍👧‍👦🏳️‍🌈🤷🏽‍♀️",
}
