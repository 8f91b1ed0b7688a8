package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llmhttp"
)

const (
	maxLimiting = 10 // percent more time than a call that nothing limits

	nameTransport = "http.Transport"
	nameLLMHTTP   = "llmhttp.New"
	nameElsewhere = "llmhttp.New, half is used elsewhere"
)

// calls measures whole calls of a model on a server that answers at once.
func calls(name, about string, run runner) scenario {
	return scenario{name, about, func(b *bench) (result, error) {
		had, b := b.freeCores(), b.finer()
		all := transports()
		contestants := make([]contestant, len(all))
		for i, t := range all {
			contestants[i] = t.contestant()
		}
		r, err := turns(b, contestants, plenty, run, make([]string, 1))
		if err != nil {
			return result{}, err
		}
		rows := r.rows()
		bare := named(rows, nameTransport)
		for i, t := range all {
			rows[i].cells = []string{
				percent(rows[i].value, bare.value),
				fmt.Sprintf("%.1f", medianOf(r.samples[i], sample.cpuCost)),
				fmt.Sprintf("%.0f", t.allocs()),
			}
		}
		rep := newCostReport(name, about+"; "+b.method(), "ns/call", rows)
		rep.columns = append(rep.columns, "more time", "CPU, ns/call", "allocations")
		return result{
			reports: []report{rep},
			checks:  []check{addsAtMost(name, named(rows, nameLLMHTTP), bare, maxLimiting)},
			notes:   noise(name, had, cores),
		}, nil
	}}
}

// crowded is a runner of many goroutines, each of which decides on one key at a time. If any
// fails, nothing counts as admitted.
func crowded(decide loop, keys []string, d time.Duration) sample {
	s, err := crowd(callers, func(int) error {
		if decide(keys[:1]) == 0 {
			return errors.New("not admitted")
		}
		return nil
	}, d)
	if err != nil {
		return sample{decisions: 1, elapsed: d}
	}
	return s
}

// granted is the quota, and what the provider says that it grants: more than a run can use.
var granted = ratelimit.ModelQuota{MaxRPM: 100_000_000, MaxTPM: 100_000_000_000}

// transport is a way to send calls.
type transport struct {
	name      string
	kind      kind
	elsewhere int // the part of what is granted that others use, as the provider says: one in so many; 0 for none
	wrap      func(http.RoundTripper, *ratelimit.RateLimiter) http.RoundTripper
}

func transports() []transport {
	bare := func(base http.RoundTripper, _ *ratelimit.RateLimiter) http.RoundTripper { return base }
	limited := func(base http.RoundTripper, l *ratelimit.RateLimiter) http.RoundTripper { return llmhttp.New(base, l) }
	return []transport{
		{nameTransport, floor, 0, bare},
		{nameLLMHTTP, ours, 0, limited},
		{nameElsewhere, ours, 2, limited},
	}
}

// contestant makes as many calls as it is given keys.
func (t transport) contestant() contestant {
	return contestant{name: t.name, kind: t.kind, build: func(quota) instance {
		c := t.dial()
		return instance{close: c.close, decide: func(keys []string) (n int) {
			for range keys {
				if c.call() {
					n++
				}
			}
			return n
		}}
	}}
}

// allocs counts what a call allocates, the server's share included.
func (t transport) allocs() float64 {
	const runs = 200
	c := t.dial()
	defer c.close()
	return testing.AllocsPerRun(runs, func() { c.call() })
}

// caller calls a model on a server of its own.
type caller struct {
	limiter *ratelimit.RateLimiter
	client  http.Client
	url     string
	text    []byte
	close   func()
}

func (t transport) dial() *caller {
	server := httptest.NewServer(answering(t.elsewhere))
	base := &http.Transport{MaxIdleConnsPerHost: callers}
	l := must(ratelimit.NewWithConfig(ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{bodyModel: granted}}))
	return &caller{
		limiter: l,
		client:  http.Client{Transport: t.wrap(base, l)},
		url:     server.URL + "/v1/chat/completions",
		text:    bytes.Replace(chatBody(1<<10, 2), []byte(`"stream":true`), []byte(`"stream":false`), 1),
		close: func() {
			base.CloseIdleConnections()
			server.Close()
			_ = l.Close()
		},
	}
}

// call reports whether the call was answered as it should be.
func (c *caller) call() bool {
	r, err := http.NewRequest(http.MethodPost, c.url, bytes.NewReader(c.text))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer sk-0123456789abcdef")
	response, err := c.client.Do(r)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	return err == nil && int(n) == len(callAnswer) && response.StatusCode == http.StatusOK
}

// What a call has used, as the answer says.
const (
	callInput  = 290
	callOutput = 96
)

// callAnswer is about a kilobyte.
var callAnswer = func() []byte {
	var said string
	for i := range callOutput {
		said += word(i)
	}
	return fmt.Appendf(nil, `{"id":"chatcmpl-CcP4d0mTqLr8xVnB2sYwKe6ZfUg1H","object":"chat.completion","created":1763216400,"model":"gpt-4o-2024-08-06",`+
		`"choices":[{"index":0,"message":{"role":"assistant","content":"%s","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},`+
		`"service_tier":"default","system_fingerprint":"fp_b54fe76834"}`, said, callInput, callOutput, callInput+callOutput)
}()

// answering answers all calls alike, with headers that say what is left: all that was granted but
// for this call or, with elsewhere, for one part in so many.
func answering(elsewhere int) http.Handler {
	left := func(all, used int) string {
		if elsewhere > 0 {
			used = all / elsewhere
		}
		return strconv.Itoa(all - used)
	}
	headers := map[string]string{
		"Content-Type":                   "application/json",
		"Openai-Processing-Ms":           "412",
		"X-Request-Id":                   "req_5f0d1a3c9b7e4826a1d4c3b2e6f70819",
		"X-Ratelimit-Limit-Requests":     strconv.Itoa(granted.MaxRPM),
		"X-Ratelimit-Limit-Tokens":       strconv.Itoa(granted.MaxTPM),
		"X-Ratelimit-Remaining-Requests": left(granted.MaxRPM, 1),
		"X-Ratelimit-Remaining-Tokens":   left(granted.MaxTPM, callInput+callOutput),
		"X-Ratelimit-Reset-Requests":     "1ms",
		"X-Ratelimit-Reset-Tokens":       "6ms",
	}
	if elsewhere > 0 {
		headers["X-Ratelimit-Reset-Requests"], headers["X-Ratelimit-Reset-Tokens"] = "30s", "30s"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		w.Write(callAnswer)
	})
}

// cpuCost is in nanoseconds of CPU a decision, of the whole process: on loopback, of the server too.
func (s sample) cpuCost() float64 { return float64(s.cpu.Nanoseconds()) / float64(s.decisions) }

// percent is how much more a is than b, or how many times it where that says more.
func percent(a, b float64) string {
	if a >= 10*b {
		return fmt.Sprintf("%.0fx", a/b)
	}
	return fmt.Sprintf("%+.1f%%", 100*(a/b-1))
}

// addsAtMost requires that a takes at most most percent more time than b.
func addsAtMost(where string, a, b row, most float64) check {
	return check{
		figure:   fmt.Sprintf("%s: %s against %s", where, a.name, b.name),
		required: fmt.Sprintf("at most %.0f%% more time", most),
		measured: percent(a.value, b.value),
		pass:     100*a.value <= (100+most)*b.value,
	}
}
