package mockprovider

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is a client of a server in memory.
type client struct {
	t *testing.T
	*http.Client
	*Server
}

func start(t *testing.T, config Config) *client {
	t.Helper()
	s := New(config)
	transport, stop := s.InMemory()
	t.Cleanup(stop)
	return &client{t, &http.Client{Transport: transport}, s}
}

// post sends a call with an X-Mock header.
func (c *client) post(ctx context.Context, url, mock, body string) (*http.Response, error) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if mock != "" {
		req.Header.Set("X-Mock", mock)
	}
	return c.Do(req)
}

// call sends a call, and returns its answer with the whole body.
func (c *client) call(url, mock, body string) (*http.Response, []byte) {
	c.t.Helper()
	response, err := c.post(c.t.Context(), url, mock, body)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatalf("%v after %s", err, text)
	}
	return response, text
}

// api is how a test calls an API.
type api struct {
	name   string
	url    string
	stream string // the URL of its streams, if that is another
	body   string // %s stands for more fields
	flag   string // the field that asks for a stream
	whole  string // the field that asks for a whole answer
	most   string // the field with the most tokens
}

var apis = []api{
	{name: "chat", url: "https://api.openai.com/v1/chat/completions",
		body: `{"model":"m","messages":[{"role":"user","content":"Say something long, please."}]%s}`,
		flag: `,"stream":true,"stream_options":{"include_usage":true}`, most: `,"max_completion_tokens":%d`},
	{name: "openrouter", url: "https://openrouter.ai/api/v1/chat/completions",
		body: `{"model":"m","messages":[{"role":"user","content":"Say something long, please."}]%s}`,
		flag: `,"stream":true,"stream_options":{"include_usage":true}`, most: `,"max_tokens":%d`},
	{name: "gemini-chat", url: "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
		body: `{"model":"m","messages":[{"role":"user","content":"Say something long, please."}]%s}`,
		flag: `,"stream":true`, most: `,"max_tokens":%d`},
	{name: "azure", url: "https://me.openai.azure.com/openai/deployments/m/chat/completions?api-version=1",
		body: `{"messages":[{"role":"user","content":"Say something long, please."}]%s}`,
		flag: `,"stream":true,"stream_options":{"include_usage":true}`, most: `,"max_tokens":%d`},
	{name: "responses", url: "https://api.openai.com/v1/responses",
		body: `{"model":"m","input":"Say something long, please."%s}`, flag: `,"stream":true`, most: `,"max_output_tokens":%d`},
	{name: "completions", url: "https://api.openai.com/v1/completions",
		body: `{"model":"m","prompt":"Say something long, please."%s}`,
		flag: `,"stream":true,"stream_options":{"include_usage":true}`, most: `,"max_tokens":%d`},
	{name: "messages", url: "https://api.anthropic.com/v1/messages",
		body: `{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":"Say something long, please."}]%s}`,
		flag: `,"stream":true`, most: `,"max_tokens":%d`},
	{name: "gemini", url: "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
		stream: "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
		body:   `{"contents":[{"role":"user","parts":[{"text":"Say something long, please."}]}]%s}`, most: `,"generationConfig":{"maxOutputTokens":%d}`},
	{name: "gemini-array", url: "https://aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/m:generateContent",
		stream: "https://aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent",
		body:   `{"contents":[{"role":"user","parts":[{"text":"Say something long, please."}]}]%s}`, most: `,"generationConfig":{"maxOutputTokens":%d}`},
	{name: "cohere", url: "https://api.cohere.com/v2/chat",
		body: `{"model":"m","messages":[{"role":"user","content":"Say something long, please."}]%s}`, flag: `,"stream":true`, most: `,"max_tokens":%d`},
	{name: "ollama-chat", url: "http://localhost:11434/api/chat",
		body: `{"model":"m","messages":[{"role":"user","content":"Say something long, please."}]%s}`, whole: `,"stream":false`, most: `,"options":{"num_predict":%d}`},
	{name: "ollama-generate", url: "http://localhost:11434/api/generate",
		body: `{"model":"m","prompt":"Say something long, please."%s}`, whole: `,"stream":false`, most: `,"options":{"num_predict":%d}`},
}

// request returns the URL and the body of a call.
func (a api) request(stream bool, most int) (url, body string) {
	url = a.url
	more := a.whole
	if stream {
		more = a.flag
		if a.stream != "" {
			url = a.stream
		}
	}
	if most > 0 {
		more += fmt.Sprintf(a.most, most)
	}
	return url, fmt.Sprintf(a.body, more)
}

// eventsOf returns the data of a body's events: one if the answer is whole.
func eventsOf(t *testing.T, response *http.Response, body []byte) (list []map[string]any) {
	t.Helper()
	add := func(text []byte) {
		var data map[string]any
		if err := json.Unmarshal(text, &data); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		list = append(list, data)
	}
	switch kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";"); {
	case kind == "text/event-stream":
		for scan := bufio.NewScanner(bytes.NewReader(body)); scan.Scan(); {
			if data, ok := bytes.CutPrefix(scan.Bytes(), []byte("data: ")); ok && string(data) != "[DONE]" {
				add(data)
			}
		}
	case kind == "application/x-ndjson":
		for scan := bufio.NewScanner(bytes.NewReader(body)); scan.Scan(); {
			add(scan.Bytes())
		}
	case body[0] == '[':
		if err := json.Unmarshal(body, &list); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	default:
		add(body)
	}
	return list
}

// reportedUsage returns the usage that the events of any API report, read in a naive way.
func reportedUsage(list []map[string]any) (u usage) {
	number := func(m map[string]any, path ...string) int {
		for _, name := range path[:len(path)-1] {
			m, _ = m[name].(map[string]any)
		}
		n, _ := m[path[len(path)-1]].(float64)
		return int(n)
	}
	for _, e := range list {
		if r, ok := e["response"].(map[string]any); ok { // of responses
			e = r
		}
		if m, ok := e["message"].(map[string]any); ok && m["usage"] != nil { // of messages
			e = m
		}
		if d, ok := e["delta"].(map[string]any); ok && d["usage"] != nil { // of Cohere's
			e = d
		}
		if tokens, ok := e["usage"].(map[string]any); ok && tokens["tokens"] != nil {
			u = usage{input: number(tokens, "tokens", "input_tokens"), cached: number(tokens, "cached_tokens"), output: number(tokens, "tokens", "output_tokens")}
		} else if ok {
			u = usage{
				input:      number(tokens, "prompt_tokens") + number(tokens, "input_tokens") + number(tokens, "cache_creation_input_tokens") + number(tokens, "cache_read_input_tokens"),
				cached:     number(tokens, "prompt_tokens_details", "cached_tokens") + number(tokens, "input_tokens_details", "cached_tokens") + number(tokens, "cache_read_input_tokens"),
				cacheWrite: number(tokens, "cache_creation_input_tokens"),
				output:     number(tokens, "completion_tokens") + number(tokens, "output_tokens"),
				reasoning:  number(tokens, "completion_tokens_details", "reasoning_tokens") + number(tokens, "output_tokens_details", "reasoning_tokens") + number(tokens, "output_tokens_details", "thinking_tokens"),
			}
		}
		if tokens, ok := e["usageMetadata"].(map[string]any); ok {
			u = usage{
				input: number(tokens, "promptTokenCount"), cached: number(tokens, "cachedContentTokenCount"),
				output:    number(tokens, "candidatesTokenCount") + number(tokens, "thoughtsTokenCount"),
				reasoning: number(tokens, "thoughtsTokenCount"),
			}
		}
		if e["done"] == true {
			u = usage{input: number(e, "prompt_eval_count"), output: number(e, "eval_count")}
		}
	}
	return u
}
