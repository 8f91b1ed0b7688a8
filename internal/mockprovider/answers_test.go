package mockprovider

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Every API reports exactly the usage that the totals count.
func TestUsageReportedIsUsageSent(t *testing.T) {
	for _, a := range apis {
		for _, stream := range []bool{false, true} {
			for _, most := range []int{0, 1, 7, 30} {
				for _, mock := range []string{"", "output=1", "output=40", "reasoning=9", "reasoning=5 output=5 cached=3 cache-write=2", "tool=get_weather", "tool=f output=3 reasoning=2", "cached=4", "hidden=25", "chunk=4 output=11 reasoning=6 hidden=3"} {
					t.Run(fmt.Sprintf("%s/stream=%v/most=%d/%s", a.name, stream, most, mock), func(t *testing.T) {
						c := start(t, Config{})
						url, body := a.request(stream, most)
						response, text := c.call(url, mock, body)
						if response.StatusCode != 200 {
							t.Fatalf("%d: %s", response.StatusCode, text)
						}
						got, sent := reportedUsage(eventsOf(t, response, text)), c.Totals()["m"]
						if strings.HasPrefix(a.name, "ollama") { // does not report these
							sent.Cached, sent.Reasoning = 0, 0
						}
						if a.name == "cohere" { // does not report this
							sent.Reasoning = 0
						}
						if want := (usage{input: sent.Input, cached: sent.Cached, cacheWrite: sent.CacheWrite, output: sent.Output, reasoning: sent.Reasoning}); got != want || sent.Requests != 1 || got.input < 6 {
							t.Errorf("told %+v, sent %+v\n%s", got, sent, text)
						}
						if most > 0 && got.output > most {
							t.Errorf("%d tokens of at most %d", got.output, most)
						}
					})
				}
			}
		}
	}
}

// The tokens of the events of a stream add up to the usage of the whole answer.
func TestEventsAddUp(t *testing.T) {
	for _, w := range routes {
		if !w.api.Generates() {
			continue
		}
		most := 1
		if w.api == dialect.Chat || w.api == dialect.Completions || w.api == dialect.Generate {
			most = 3
		}
		for answers := range most {
			for _, r := range []Reply{{}, {Reasoning: 4}, {Tool: &Tool{Name: "look_up", Arguments: `{"a":[1,2]}`}, Reasoning: 2}, {Text: "a, b!", Tool: &Tool{Name: "f"}}} {
				for _, as := range []llm.Provider{dialect.OpenAI, dialect.OpenRouter, dialect.Gemini} {
					r.As = as
					a := newAnswer(&Call{API: w.api, Model: "m", Answers: answers + 1, Prompt: 5, UsageAsked: true, Provider: dialect.OpenAI}, &r, t0)
					var sum usage
					for e := range w.format.events(a) {
						sum.output += e.output
						sum.reasoning += e.reasoning
					}
					if sum.output != a.usage.output || sum.reasoning != a.usage.reasoning {
						t.Errorf("%s as %s: events bring %d and %d, usage is %d and %d", w.api, as, sum.output, sum.reasoning, a.usage.output, a.usage.reasoning)
					}
				}
			}
		}
	}
}

// A script gets every event of a stream, with its tokens, and can end the stream.
func TestScriptsFollowStreams(t *testing.T) {
	for _, a := range apis {
		if a.name == "gemini-array" {
			continue // what is left of it is no JSON
		}
		tokens := 0
		c := start(t, Config{Script: func(Call) Reply {
			return Reply{Output: 100, Token: "7", Chunk: 8, Event: func(n int) bool {
				tokens += n
				return tokens <= 50
			}}
		}})
		url, body := a.request(true, 0)
		response, raw := c.call(url, "", body)
		var said strings.Builder
		for _, e := range eventsOf(t, response, raw) {
			said.WriteString(textOf(e))
		}
		if want := strings.Repeat("7", 48); said.String() != want || c.Totals()["m"].Output != 48 || tokens != 56 {
			t.Errorf("%s: %q, %+v, %d tokens heard of", a.name, said.String(), c.Totals()["m"], tokens)
		}
	}
}

// A chat stream has no usage unless it is asked for; then it is null in all chunks but the last.
func TestChatReportsUsageWhenAsked(t *testing.T) {
	const url = "https://api.openai.com/v1/chat/completions"
	c := start(t, Config{})
	response, text := c.call(url, "output=3", `{"model":"m","messages":[],"stream":true}`)
	for _, e := range eventsOf(t, response, text) {
		if _, there := e["usage"]; there {
			t.Errorf("not asked for: %v", e)
		}
	}
	if !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
		t.Errorf("it does not end with [DONE]: %s", text)
	}
	response, text = c.call(url, "output=3", `{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}`)
	events := eventsOf(t, response, text)
	for i, e := range events {
		value, there := e["usage"]
		if last := i == len(events)-1; !there || (value != nil) != last || (len(e["choices"].([]any)) == 0) != last {
			t.Errorf("chunk %d of %d: %v", i, len(events), e)
		}
	}
}

// Tokens come one by one, and make the text if they are joined.
func TestStreamsAreTheText(t *testing.T) {
	const text = "Grüße aus 東京: it's 21° today."
	c := start(t, Config{Script: func(Call) Reply { return Reply{Text: text} }})
	for _, a := range apis {
		url, body := a.request(true, 0)
		response, raw := c.call(url, "", body)
		var said strings.Builder
		for _, e := range eventsOf(t, response, raw) {
			said.WriteString(textOf(e))
		}
		if said.String() != text {
			t.Errorf("%s: %q", a.name, said.String())
		}
	}
}

// textOf returns the text that an event carries.
func textOf(e map[string]any) string {
	find := func(path ...string) string {
		var v any = e
		for _, name := range path {
			switch at := v.(type) {
			case map[string]any:
				v = at[name]
			case []any:
				if len(at) == 0 {
					return ""
				}
				v = at[0].(map[string]any)[name]
			}
		}
		text, _ := v.(string)
		return text
	}
	if kind := find("type"); kind == "response.output_text.delta" {
		return find("delta")
	}
	return find("choices", "delta", "content") + find("choices", "text") + find("delta", "text") + find("delta", "message", "content", "text") +
		find("candidates", "content", "parts", "text") + find("message", "content") + textIf(e["response"])
}

func textIf(v any) string {
	text, _ := v.(string)
	return text
}

func TestSeveralAnswers(t *testing.T) {
	for _, c := range []struct {
		name, url, body string
		answers         int
	}{
		{"chat", "https://api.openai.com/v1/chat/completions", `{"model":"m","messages":[],"n":3}`, 3},
		{"completions", "https://api.openai.com/v1/completions", `{"model":"m","prompt":["a","b"],"n":2}`, 4},
		{"tokens", "https://api.openai.com/v1/completions", `{"model":"m","prompt":[1,2,3]}`, 1},
		{"gemini", "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent", `{"contents":[],"generationConfig":{"candidateCount":2}}`, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := start(t, Config{})
			client.call(c.url, "output=5", c.body)
			if got := client.Totals()["m"].Output; got != 5*c.answers {
				t.Errorf("%d tokens of %d answers", got, c.answers)
			}
		})
	}
}

func TestEmbeddings(t *testing.T) {
	for _, c := range []struct {
		body           string
		vectors, input int
	}{
		{`{"model":"m","input":"one two"}`, 1, 2},
		{`{"model":"m","input":["one","two","six"],"dimensions":3}`, 3, 3},
		{`{"model":"m","input":[5,6,7]}`, 1, 3},
		{`{"model":"m","input":[[5,6],[7]],"encoding_format":"base64"}`, 2, 3},
	} {
		client := start(t, Config{})
		_, text := client.call("https://api.openai.com/v1/embeddings", "", c.body)
		var got struct {
			Data  []struct{ Embedding any }
			Usage map[string]int
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		total := client.Totals()["m"]
		if len(got.Data) != c.vectors || got.Usage["prompt_tokens"] != c.input || total.Input != c.input || total.Output != 0 {
			t.Errorf("%s: %s, %+v", c.body, text, total)
		}
	}
}

// Requests that count prompts or list models use nothing.
func TestOthers(t *testing.T) {
	c := start(t, Config{})
	for _, each := range []struct{ url, body, want string }{
		{"https://api.openai.com/v1/responses/input_tokens", `{"model":"m","input":"one two"}`, `{"input_tokens":2}`},
		{"https://api.anthropic.com/v1/messages/count_tokens", `{"messages":[{"role":"user","content":"one two"}]}`, `{"input_tokens":3}`},
		{"https://generativelanguage.googleapis.com/v1beta/models/m:countTokens", `{"contents":[{"parts":[{"text":"one two"}]}]}`, `{"totalTokens":2}`},
	} {
		if _, text := c.call(each.url, "", each.body); string(text) != each.want {
			t.Errorf("%s: %s", each.url, text)
		}
	}
	response, err := c.Get("https://api.openai.com/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if len(c.Totals()) != 0 || response.StatusCode != 200 {
		t.Errorf("%d, %v", response.StatusCode, c.Totals())
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string][]string{
		"":                 {},
		" ":                {" "},
		"one":              {"one"},
		"Hello, world!":    {"Hell", "o", ",", " worl", "d", "!"},
		"a  b\n":           {"a", "  ", "b", "\n"},
		"日本語です":            {"日本語で", "す"},
		`{"city":"Paris"}`: {"{", `"`, "city", `"`, ":", `"`, "Pari", "s", `"`, "}"},
	} {
		if got := split(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
	for n := range 50 {
		if got := Count(strings.Join(wordsOf(n), "")); got != n {
			t.Errorf("say(%d) has %d tokens", n, got)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, text := range []string{"", "Hello, world!", "  a\xffb ", "日本"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens := split(text)
		if strings.Join(tokens, "") != text || slices.Contains(tokens, "") {
			t.Errorf("%q: %q", text, tokens)
		}
	})
}
