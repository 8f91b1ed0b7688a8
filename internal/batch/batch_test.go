package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// split returns the lines of a text that is written in pieces of a size.
func split(text []byte, size, max int) (lines []string, err error) {
	l := &Lines{Max: max, Each: func(line []byte) error {
		lines = append(lines, string(line))
		return nil
	}}
	for len(text) > 0 {
		n := min(size, len(text))
		l.Write(text[:n])
		text = text[n:]
	}
	return lines, l.Close()
}

// FuzzLines compares with a split of the whole text.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\nbb\r\n ccc"), 2, 3)
	f.Add([]byte("aaaa\nb"), 1, 3)
	f.Fuzz(func(t *testing.T, text []byte, size, max int) {
		size, max = 1+abs(size)%64, 1+abs(max)%64
		var want []string
		long := false
		for _, line := range bytes.Split(text, []byte("\n")) {
			if long = long || len(line) > max; long {
				break
			}
			if line = bytes.TrimSpace(line); len(line) > 0 {
				want = append(want, string(line))
			}
		}
		got, err := split(text, size, max)
		if (err != nil) != long || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%q in pieces of %d, lines of %d: %q, %v; want %q, too long: %v", text, size, max, got, err, want, long)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }

// FuzzRead reads what clients and providers send. What can be read is what encoding/json reads.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"custom_id":"a","method":"POST","url":"/v1/responses","body":{"model":"m","input":"x"}}`))
	f.Add([]byte(`{"requests":[{"params":{"model":"m","max_tokens":1,"messages":[]}}]}`))
	f.Add([]byte(`{"response":{"status_code":200,"body":{"object":"chat.completion","model":"m","usage":{"prompt_tokens":1,"completion_tokens":2}}}}`))
	f.Add([]byte(`{"result":{"type":"succeeded","message":{"model":"m","usage":{"input_tokens":1,"output_tokens":2}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, fault := Fields(text, "model")
		if _, _, err := ReadLine(text, dialect.OpenAI); err == nil && fault != nil && !json.Valid(text) {
			t.Errorf("%q can be read", text)
		}
		EachInline(text, func(dialect.Request, []byte) error { return nil })
		ReadObjects(text)
		InputFile(text)
		if r, err := ReadResult(text); err == nil && (!json.Valid(text) || r.Used.Input < -1 || r.Used.Output < 0) {
			t.Errorf("%q: %+v", text, r)
		}
	})
}

// A file of 100,000 lines needs the memory of one. A line that is too long ends the reading.
func TestManyLines(t *testing.T) {
	line := `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"Hello"}]}}` + "\n"
	calls := 0
	l := &Lines{Max: 1000, Each: func(line []byte) error {
		calls++
		if calls%100 != 0 {
			return nil
		}
		_, _, err := ReadLine(line, dialect.OpenAI)
		return err
	}}
	text := []byte(strings.Repeat(line, 1000))
	for range 100 {
		l.Write(text[:12345])
		l.Write(text[12345:])
	}
	if err := l.Close(); err != nil || calls != 100_000 || cap(l.line) > 1000 {
		t.Errorf("%d calls, %v, %d bytes", calls, err, cap(l.line))
	}
	l.Each = func([]byte) error { t.Error("a line was read"); return nil }
	for range 10 {
		l.Write(bytes.Repeat([]byte("x"), 999))
	}
	if err := l.Close(); err == nil || err.Error() != "ratelimit: line 100001 is longer than 1000 bytes" {
		t.Error(err)
	}
}

// A buffer for which there is no memory ends the reading.
func TestNoMemory(t *testing.T) {
	full := errors.New("full")
	l := &Lines{Max: 1000, Grow: func(b []byte, _ int64) ([]byte, error) { return b, full }}
	l.Write([]byte("x"))
	if err := l.Close(); !errors.Is(err, full) {
		t.Error(err)
	}
}

func TestReadResult(t *testing.T) {
	usage := `"usage":{"prompt_tokens":7,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":3}}`
	for _, c := range []struct {
		line string
		want Result
		ok   bool
	}{
		{`{"response":{"status_code":200,"body":{"object":"chat.completion","model":"m",` + usage + `}},"error":null}`, Result{Model: "m", Used: llm.Usage{Input: 7, Cached: 3, Output: 5, Exact: true}}, true},
		{`{"response":{"status_code":200,"body":{"object":"response","model":"m","usage":{"input_tokens":7,"output_tokens":5}}}}`, Result{Model: "m", Used: llm.Usage{Input: 7, Output: 5, Exact: true}}, true},
		{`{"response":{"status_code":200,"body":{"object":"list","model":"m","usage":{"prompt_tokens":7,"total_tokens":7}}}}`, Result{Model: "m", Used: llm.Usage{Input: 7, Exact: true}}, true},
		{`{"result":{"type":"succeeded","message":{"model":"m","usage":{"input_tokens":4,"cache_read_input_tokens":3,"output_tokens":5,"service_tier":"batch"}}}}`, Result{Model: "m", Used: llm.Usage{Input: 7, Cached: 3, Output: 5, Tier: "batch", Exact: true}}, true},
		{`{"response":{"status_code":400,"body":{}}}`, Result{Free: true}, true},
		{`{"response":null,"error":{"code":"batch_expired"}}`, Result{Free: true}, true},
		{`{"result":{"type":"errored"}}`, Result{Free: true}, true},
		{`{"result":{"type":"expired"}}`, Result{Free: true}, true},
		{`{"result":{"type":"new"}}`, Result{}, false},
		{`{"response":{"status_code":200,"body":{"object":"new"}}}`, Result{}, false},
		{`{"response":{"status_code":200`, Result{}, false},
		{`{}`, Result{}, false},
	} {
		if got, err := ReadResult([]byte(c.line)); got != c.want || (err == nil) != c.ok {
			t.Errorf("%s: %+v, %v", c.line, got, err)
		}
	}
}

// A digest is small, whatever the calls of a file are.
func TestDigestIsSmall(t *testing.T) {
	var d Digest
	for i := range 1000 {
		line := fmt.Sprintf(`{"request":{"contents":[{"parts":[{"text":%q}]}],"generationConfig":{"maxOutputTokens":%d}}}`, strings.Repeat("a", i), i+1)
		if err := d.Add([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	for _, g := range d.Groups {
		calls += g.Calls
	}
	if len(d.Groups) != maxGroups || calls != 1000 || d.Groups[maxGroups-1].Shape.MaxOutput != 1000 {
		t.Errorf("%d calls are in %d groups, of which the last is %+v", calls, len(d.Groups), d.Groups[len(d.Groups)-1])
	}
	if err := d.Add([]byte(`{"request":{"model":"` + strings.Repeat("m", maxModel+1) + `","contents":[]}}`)); err != errModel {
		t.Errorf("a long name of a model: %v", err)
	}
}
