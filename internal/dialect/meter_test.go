package dialect_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// metered is what a meter reports about a body.
type metered struct {
	Usage llm.Usage
	Fault string
}

// meter writes the pieces to a meter.
func meter(api dialect.API, h http.Header, pieces ...string) metered {
	m := dialect.NewMeter(api, h)
	for _, p := range pieces {
		_, _ = m.Write([]byte(p))
	}
	return metered{m.Usage(), m.Fault()}
}

// bytewise cuts a body into single bytes.
func bytewise(body string) []string {
	pieces := make([]string, len(body))
	for i := range pieces {
		pieces[i] = body[i : i+1]
	}
	return pieces
}

func TestMeter(t *testing.T) {
	for _, s := range meterStreams {
		t.Run(s.name, func(t *testing.T) {
			want := metered{s.want, s.fault}
			if got := meter(s.api, nil, s.body); got != want {
				t.Errorf("in one piece: got %+v, want %+v", got, want)
			}
			if got := meter(s.api, nil, bytewise(s.body)...); got != want {
				t.Errorf("by bytes: got %+v, want %+v", got, want)
			}
			for i := range len(s.body) {
				if got := meter(s.api, nil, s.body[:i], s.body[i:]); got != want {
					t.Fatalf("split at %d: got %+v, want %+v", i, got, want)
				}
			}
		})
	}
}

// zip compresses a body, flushed after each of its parts.
func zip(t *testing.T, parts ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, p := range parts {
		if _, err := z.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMeterGzip(t *testing.T) {
	for _, s := range meterStreams {
		for _, encoding := range []string{"gzip", "x-gzip", "GZIP"} {
			h := http.Header{"Content-Encoding": {encoding}}
			want := metered{s.want, s.fault}
			body := zip(t, s.body[:len(s.body)/3], s.body[len(s.body)/3:])
			if got := meter(s.api, h, body); got != want {
				t.Errorf("%s, in one piece: got %+v, want %+v", s.name, got, want)
			}
			if got := meter(s.api, h, body[:len(body)/2], "", body[len(body)/2:], "what else?"); got != want {
				t.Errorf("%s, in pieces: got %+v, want %+v", s.name, got, want)
			}
			if got := meter(s.api, h, bytewise(body)...); got != want {
				t.Errorf("%s, by bytes: got %+v, want %+v", s.name, got, want)
			}
		}
	}
}

// gzipped are the headers of a compressed body.
var gzipped = http.Header{"Content-Encoding": {"gzip"}}

// TestMeterCut cuts every stream at every byte. The usage of the rest is never more than that of
// the whole, and exact only where the provider has reported it.
func TestMeterCut(t *testing.T) {
	for _, s := range meterStreams {
		t.Run(s.name, func(t *testing.T) {
			last := 0
			for i := range len(s.body) {
				u := meter(s.api, nil, s.body[:i]).Usage
				if u.Output > s.truth || u.Input > s.want.Input || u.Cached > s.want.Cached {
					t.Fatalf("cut at %d: %+v is more than the truth, %d", i, u, s.truth)
				}
				if u.Output < last {
					t.Fatalf("cut at %d: %+v is less than before, %d", i, u, last)
				}
				if u.Exact && u.Output < s.truth {
					t.Fatalf("cut at %d: %+v is claimed to be exact", i, u)
				}
				last = u.Output
			}
		})
	}
}

func TestMeterNumbers(t *testing.T) {
	for number, want := range map[string]int{
		"0": 0, "7": 7, "-0": 0, "5.0": 5, "1e3": 1000, "1E+3": 1000, "1.5e1": 15, "100e-2": 1, "9007199254740991": 1<<53 - 1, "0." + strings.Repeat("0", 40) + "1e41": 1,
		"-1": -1, "0.5": -1, "1e-1": -1, "9007199254740992": -1, "1e300": -1, "1e999": -1, "12345678901234567890": -1, "5." + strings.Repeat("0", 70): -1,
		"null": -1, "true": -1, `"5"`: -1, "NaN": -1, "Infinity": -1, "0x10": -1, "[]": -1, "{}": -1, "[5]": 5, "--1": -1, "1-1": -1, "": -1,
	} {
		body := `{"usage":{"prompt_tokens":` + number + `}}`
		for _, got := range []metered{meter(dialect.Chat, nil, body), meter(dialect.Chat, nil, bytewise(body)...)} {
			if got.Usage.Input != want {
				t.Errorf("%s is read as %d, want %d", number, got.Usage.Input, want)
			}
		}
	}
}

// TestMeterLeast checks the least output of a response that does not report usage.
func TestMeterLeast(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       int
	}{
		{"cut in a text", `{"choices":[{"message":{"content":"twelve chars`, 2},
		{"cut in an escape", `{"choices":[{"message":{"content":"twelve char\u00`, 2},
		{"escapes are one character", `{"choices":[{"message":{"content":"\u0061\n\ud83d\ude00\"\\\/"`, 1},
		{"characters, not bytes", `{"choices":[{"message":{"content":"世界世界世界"`, 1},
		{"arguments cut", `{"content":[{"type":"tool_use","name":"f","input":{"city":"San Francisco","days":[1,"two`, 5},
		{"an error of an event", sse(`{"choices":[{"message":{"content":"twelve chars"}}]`), 0},
		{"many answers", sse(`{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}`), 2},
		{"nothing generated in vain", sse(`{"usage":{"prompt_tokens":5,"completion_tokens":0}}`, delta(`"content":""`)), 0},
		{"cut after it was said", sse(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`) + `data: {"choices":[{"delta":{"content":"b`, 2},
		{"said to be nothing", sse(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":0}}`), 1},
	} {
		if got := meter(dialect.Chat, nil, tt.body).Usage; got.Output != tt.want || got.Exact && tt.want > 0 {
			t.Errorf("%s: got %+v, want %d", tt.name, got, tt.want)
		}
	}
}

func TestMeterEncodings(t *testing.T) {
	body := `{"usage":{"prompt_tokens":5,"completion_tokens":2}}`
	read, unread := llm.Usage{Input: 5, Output: 2, Exact: true}, llm.Usage{Input: -1}
	for _, tt := range []struct {
		encoding, body string
		want           llm.Usage
	}{
		{"identity", body, read},
		{"gzip", zip(t, body), read},
		{"gzip", zip(t, body[:9]) + zip(t, body[9:]), read},
		{"gzip", zip(t, body) + "garbage", read},
		{"gzip", zip(t, body, strings.Repeat(" ", 100))[:60], read},
		{"gzip", body, unread},
		{"gzip", "", unread},
		{"gzip", zip(t, body)[:15], unread},
		{"br", body, unread},
		{"zstd", "(\xb5/\xfd", unread},
		{"gzip, gzip", zip(t, body), unread},
	} {
		h := http.Header{"Content-Encoding": {tt.encoding}}
		for _, got := range []metered{meter(dialect.Chat, h, tt.body), meter(dialect.Chat, h, bytewise(tt.body)...)} {
			if got.Usage != tt.want {
				t.Errorf("%s of %q: got %+v, want %+v", tt.encoding, tt.body, got.Usage, tt.want)
			}
		}
	}
}

// No goroutine is left, whether Usage is called once, twice or before anything was written.
func TestMeterGzipEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, body := range []string{"", "garbage", zip(t, "{}"), zip(t, "{}")[:12]} {
			m := dialect.NewMeter(dialect.Chat, gzipped)
			for i := range len(body) {
				_, _ = m.Write([]byte{body[i]})
			}
			if f := m.Fault(); f != "" {
				t.Errorf("got fault %q", f)
			}
			if a, b := m.Usage(), m.Usage(); a != b {
				t.Errorf("first %+v, then %+v", a, b)
			}
		}
	})
}

func TestMeterAllocatesNothing(t *testing.T) {
	for _, s := range benchStreams {
		m, p := dialect.NewMeter(s.api, nil), []byte(s.chunk)
		if n := testing.AllocsPerRun(100, func() { _, _ = m.Write(p) }); n != 0 {
			t.Errorf("%s: %v allocations a chunk", s.name, n)
		}
	}
}

// TestMeterLarge meters 16 MB of chunks, a line of 50 MB and deeply nested values, and keeps none
// of it.
func TestMeterLarge(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m := dialect.NewMeter(dialect.Chat, nil)
	const mb = 1 << 20
	chunk := []byte(strings.Repeat(sse(delta(`"content":" world"`)), 1000))
	count := 0
	for n := 0; n < 16*mb; n += len(chunk) {
		_, _ = m.Write(chunk)
		count += 1000
	}
	text := bytes.Repeat([]byte("a"), mb)
	_, _ = m.Write([]byte(`data: {"id":"`))
	for range 25 {
		_, _ = m.Write(text)
	}
	_, _ = m.Write([]byte(`","choices":[{"delta":{"content":"`))
	for range 25 {
		_, _ = m.Write(text)
	}
	_, _ = m.Write([]byte(`"}}],"deep":` + strings.Repeat(`[{"usage":`, 100_000) + "1" + strings.Repeat("}]", 100_000) + "}\n\n"))
	_, _ = m.Write([]byte(`data: {"choices":` + strings.Repeat(`[`, 100_000)))
	u := m.Usage()
	runtime.ReadMemStats(&after)
	if want := (count*len(" world") + 25*mb + 5) / 6; u.Output != want {
		t.Errorf("got %+v, want %d", u, want)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 8*mb {
		t.Errorf("%d bytes were allocated", used)
	}
}

func TestUsageTokens(t *testing.T) {
	known := llm.Usage{Input: 100, Cached: 60, CacheWrite: 10, Output: 30, Reasoning: 20, Exact: true}
	unknown := llm.Usage{Input: -1, Output: 7}
	for _, tt := range []struct {
		provider llm.Provider
		of       llm.Usage
		want     llm.Tokens
	}{
		{dialect.OpenAI, known, llm.Tokens{Input: 100, Output: 30}},
		{dialect.Vertex, known, llm.Tokens{Input: 100, Output: 30}},
		{dialect.Anthropic, known, llm.Tokens{Input: 100, Output: 30, FreeInput: 60}},
		{dialect.Groq, known, llm.Tokens{Input: 100, Output: 30, FreeInput: 60}},
		{dialect.Gemini, known, llm.Tokens{Input: 100, Output: 30, FreeOutput: 30}},
		{dialect.Anthropic, unknown, llm.Tokens{Input: -1, Output: 7}},
		{dialect.Anthropic, llm.Usage{Input: -1, Cached: 5}, llm.Tokens{Input: -1}},
		{dialect.Gemini, unknown, llm.Tokens{Input: -1, Output: 7, FreeOutput: 7}},
	} {
		if got := dialect.TokensOf(tt.of, tt.provider, llm.TokenWeights{}); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.provider, got, tt.want)
		}
	}
}
