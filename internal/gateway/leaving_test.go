package gateway

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// thinking is a provider whose answers have 2,000 hidden tokens before the first visible one.
// A stream stalls after that, so that its client always leaves before the end.
var thinking = mockprovider.Config{Script: func(c mockprovider.Call) mockprovider.Reply {
	reply := mockprovider.Reply{Reasoning: 1990, Output: 10}
	if c.Stream {
		reply.Fault, reply.After = mockprovider.FaultStall, 6
	}
	return reply
}}

// budgeted is a gateway whose projects have budgets, so that a test can read what they were
// charged.
const budgeted = `
providers:
  openai: {base_url: MOCK, models: {"*": {}}}
  anthropic: {base_url: MOCK, models: {"*": {}}}
  gemini: {base_url: MOCK, models: {"*": {}}}
  vllm: {base_url: MOCK, models: {"*": {}}}
defaults: {tokens_per_month: 1_000_000_000}
projects:
  trusted: {unknown_usage: seen}
`

// unread is a gateway that does not read on when a client leaves.
const unread = "server: {read_on: 0s}\n"

// charged returns how many tokens a project was charged.
func (r *rig) charged(t testing.TB, project string) int {
	t.Helper()
	r.settled(t)
	d, err := r.Projects().Peek(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Windows() {
		if s.Window.Unit == "tokens" {
			return int(s.Window.Count - s.Remaining)
		}
	}
	t.Fatal("the project has no budget")
	return 0
}

// leaveAfter opens a stream, and leaves once a line of it has the text.
func (r *rig) leaveAfter(t *testing.T, text, path, body, project string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	lines := bufio.NewScanner(open(t, ctx, r, path, body, project).Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	t.Fatalf("the stream has no %s: %v", text, lines.Err())
}

const (
	// chatOf returns a request for a stream of OpenAI's API, with more fields.
	chatOf = `{"model":%q,"stream":true,"messages":[{"role":"user","content":"Think"}]%s}`

	generateStream = "/gemini/v1beta/models/gemini-3:streamGenerateContent?alt=sse"
)

// A client that leaves a stream after the first visible token pays for what was reserved.
// Once, the provider generated 80,000 tokens for 40 such streams, and the project was charged
// 1,040.
func TestLeavingAStreamIsNotFree(t *testing.T) {
	const streams, tokens = 40, 2000
	for _, c := range []struct {
		name, path, body, visible string
		learned                   string // a call of the same model from which the estimator learns first
	}{
		{name: "bounded", path: chat, body: fmt.Sprintf(chatOf, "o5", `,"max_tokens":2000`), visible: `"content":"the"`},
		{
			name: "learned", path: "/vllm/v1/chat/completions", body: fmt.Sprintf(chatOf, "o5", `,"max_tokens":64000`), visible: `"content":"the"`,
			learned: `{"model":"o5","max_tokens":64000,"messages":[{"role":"user","content":"Think"}]}`,
		},
		{
			name: "Anthropic, after message_start", path: messages, visible: "message_start",
			body:    `{"model":"claude-6","stream":true,"max_tokens":64000,"messages":[{"role":"user","content":"Think"}]}`,
			learned: `{"model":"claude-6","max_tokens":64000,"messages":[{"role":"user","content":"Think"}]}`,
		},
		{
			name: "Gemini, which tells what was used up to now", path: generateStream, visible: "usageMetadata",
			body:    `{"contents":[{"parts":[{"text":"Think"}]}]}`,
			learned: `{"contents":[{"parts":[{"text":"Think"}]}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, budgeted+unread, thinking)
			whole, _, _ := strings.Cut(strings.Replace(c.path, "streamGenerate", "generate", 1), "?")
			for range 16 {
				if c.learned != "" && r.post(t, whole, c.learned, fieldProject, "teacher").status != 200 {
					t.Fatal("it has learned nothing")
				}
			}
			for range streams {
				r.leaveAfter(t, c.visible, c.path, c.body, "leaver")
			}
			if got := r.charged(t, "leaver"); got < streams*tokens {
				t.Errorf("%d tokens were generated, and %d are charged", streams*tokens, got)
			}
		})
	}
}

// A project with short answers so far is charged for a stream that it leaves as much as a
// project without a history.
func TestShortAnswersDoNotMakeLeavingFree(t *testing.T) {
	r := newRig(t, budgeted+unread, mockprovider.Config{Script: func(c mockprovider.Call) mockprovider.Reply {
		if c.Stream {
			return mockprovider.Reply{Reasoning: 2000, Output: 100, Fault: mockprovider.FaultStall, After: 3}
		}
		return mockprovider.Reply{Output: 1}
	}})
	for range 64 {
		r.post(t, chat, `{"model":"o5","messages":[{"role":"user","content":"Hi"}]}`, fieldProject, "leaver")
	}
	before := r.charged(t, "leaver")
	const streams = 10
	for range streams {
		r.leaveAfter(t, `"content":"the"`, chat, fmt.Sprintf(chatOf, "o5", ""), "leaver")
	}
	if got := r.charged(t, "leaver") - before; got < streams*256 {
		t.Errorf("%d tokens are charged for %d streams", got, streams)
	}
}

// A reservation is never larger than the limits; the charge for a stream that its client
// leaves may be.
func TestLeavingBeyondALimitIsNotFree(t *testing.T) {
	r := newRig(t, budgeted+"  small: {tokens_per_minute: 300}\n"+unread, mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply {
		return mockprovider.Reply{Reasoning: 1000, Fault: mockprovider.FaultStall, After: 1}
	}})
	r.leaveAfter(t, `"assistant"`, "/vllm/v1/chat/completions", fmt.Sprintf(chatOf, "o5", `,"max_tokens":1000`), "small")
	r.settled(t)
	d, err := r.Projects().Peek(t.Context(), "small")
	if err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	for _, s := range d.Windows() {
		most = max(most, s.Window.Count-s.Remaining)
	}
	if most < 1000 {
		t.Errorf("%d tokens are charged to the budget", most)
	}
}

// With unknown_usage: seen, a project is charged only what was seen of a stream.
func TestUnknownUsageSeen(t *testing.T) {
	r := newRig(t, budgeted+unread, thinking)
	r.leaveAfter(t, `"content":"the"`, chat, fmt.Sprintf(chatOf, "o5", `,"max_tokens":2000`), "trusted")
	if got := r.charged(t, "trusted"); got == 0 || got > 100 {
		t.Errorf("%d tokens are charged", got)
	}
	if got := r.Config().Defaults.UnknownUsage; got != config.UsageReserved {
		t.Errorf("the default is %q", got)
	}
}

// The estimator learns nothing from streams that broke off.
func TestCutStreamsTeachNothing(t *testing.T) {
	r := newRig(t, budgeted+unread, thinking)
	asks := dialect.Request{Endpoint: dialect.Endpoint{Provider: dialect.OpenAI, API: dialect.Chat, Model: "o5"}, Prompt: 7, Answers: 1}
	before := r.limits.Estimator.Estimate("leaver", &asks)
	for range 20 {
		r.leaveAfter(t, `"content":"the"`, chat, fmt.Sprintf(chatOf, "o5", ""), "leaver")
	}
	r.settled(t)
	if after := r.limits.Estimator.Estimate("leaver", &asks); after != before {
		t.Errorf("it has expected %+v, and expects %+v", before, after)
	}
}
