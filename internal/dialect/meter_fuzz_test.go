package dialect_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// seedDice adds bytes from which dice draws.
func seedDice(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		b := make([]byte, 100+r.IntN(1200))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
}

// cut cuts a body into random pieces.
func (d *dice) cut(body string) []string {
	var pieces []string
	for len(body) > 0 && len(d.b) > 0 {
		n := min(len(body), 1+d.n(1+d.n(300)))
		pieces = append(pieces, body[:n])
		body = body[n:]
	}
	return append(pieces, body)
}

// FuzzMeterModel compares the meter with a naive one on the same streams.
func FuzzMeterModel(f *testing.F) {
	seedDice(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		d := &dice{b}
		body := d.stream()
		want := naiveMeter(body)
		if got := meter(dialect.Chat, nil, body); got != want {
			t.Fatalf("got  %+v\nwant %+v\nof %q", got, want, body)
		}
		if got := meter(dialect.Chat, nil, d.cut(body)...); got != want {
			t.Fatalf("in pieces: got  %+v\nwant %+v\nof %q", got, want, body)
		}
	})
}

// FuzzMeterSplit writes any bytes to a meter, in any pieces.
func FuzzMeterSplit(f *testing.F) {
	for _, s := range meterStreams {
		f.Add([]byte(s.body), []byte("\x00\x30\x00\x11\x01\x07\x00\x02\x00\x60\x00\x05"), true)
	}
	f.Fuzz(func(t *testing.T, body, splits []byte, zipped bool) {
		want := meter(dialect.Chat, nil, string(body))
		pieces := (&dice{splits}).cut(string(body))
		if got := meter(dialect.Chat, nil, pieces...); got != want {
			t.Fatalf("in pieces: got %+v, want %+v", got, want)
		}
		if got := meter(dialect.Chat, nil, bytewise(string(body))...); got != want {
			t.Fatalf("by bytes: got %+v, want %+v", got, want)
		}
		if !zipped {
			return
		}
		if got := meter(dialect.Chat, gzipped, (&dice{splits}).cut(zip(t, pieces...))...); got != want {
			t.Fatalf("compressed: got %+v, want %+v", got, want)
		}
		meter(dialect.Chat, gzipped, pieces...)
	})
}

// FuzzHide compares Hide with a naive reader that removes the events with nothing but usage.
func FuzzHide(f *testing.F) {
	seedDice(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		d := &dice{b}
		var body, want strings.Builder
		end := pick(d, "\n", "\r\n", "\r")
		told := false
		for range d.n(8) {
			event, hidden, beside := d.chatEvent(end)
			body.WriteString(event)
			told = told || beside
			if told || !hidden {
				want.WriteString(event)
			}
		}
		m := dialect.NewMeter(dialect.Chat, nil)
		got, err := readBy(m.Hide(&inPieces{d.cut(body.String())}), func() int { return 1 + d.n(1+d.n(5000)) })
		if err != io.ErrUnexpectedEOF {
			t.Fatalf("got error %v", err)
		}
		if got != want.String() {
			t.Fatalf("got  %q\nwant %q\nof %q", got, want.String(), body.String())
		}
		if got, want := (metered{m.Usage(), m.Fault()}), meter(dialect.Chat, nil, body.String()); got != want {
			t.Fatalf("metered %+v, want %+v", got, want)
		}
	})
}

// chatEvent draws an event of an OpenAI chat stream, and whether it has nothing but usage, or usage
// beside something else.
func (d *dice) chatEvent(end string) (event string, hidden, beside bool) {
	choices := pick(d, `[]`, `[ ]`, `[]`, `[{"delta":{"content":"x"}}]`, `[0]`, `[[]]`, `{}`, `null`, `[""]`)
	usage := pick(d, `{}`, `{"prompt_tokens":5,"completion_tokens":2}`, `{"x":[{}]}`, `null`, `[]`, `[{}]`, `1`, `"{}"`)
	members := []string{`"choices":` + choices, `"usage": ` + usage}
	empty := choices == "[]" || choices == "[ ]"
	hidden, beside = empty && usage[0] == '{', !empty && usage[0] == '{'
	switch d.n(6) {
	case 0:
		members = []string{members[1], members[0]}
	case 1:
		members, hidden, beside = members[:1], false, false
	case 2:
		members, hidden, beside = members[1:], false, false
	}
	if d.n(8) == 0 {
		members = append(members, `"pad":"`+strings.Repeat("x", 9000)+`"`)
		hidden = false
	}
	other := pick(d, `"id":"a\"b"`, `"x_groq":{"usage":{},"choices":[1]}`, `"prompt_filter_results":[{}]`, `"provider":"x"`, `"created":1`)
	hidden = hidden && !strings.ContainsAny(other, "{[")
	members = append(members, other)
	data := "{" + strings.Join(members, pick(d, ",", ",\n", " , ")) + "}"
	changed := d.n(16)
	beside = beside && changed > 4
	switch changed {
	case 0:
		data, hidden = "[DONE]", false
	case 1:
		data, hidden = data[:d.n(len(data))], false
	case 2:
		data, hidden = "["+data+"]", false
	case 3:
		data, hidden = data+data, false
	case 4:
		data, hidden = data+" what?", false
	}
	lines := strings.Split(data, "\n")
	event = pick(d, "", "", "id: 1"+end, ": comment"+end)
	for _, l := range lines {
		event += pick(d, "data:", "data: ") + l + end
	}
	return event + end, hidden, beside
}

// inPieces is a stream that comes in pieces, and ends in an error.
type inPieces struct{ pieces []string }

func (r *inPieces) Read(p []byte) (int, error) {
	if len(r.pieces) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, r.pieces[0])
	if r.pieces[0] = r.pieces[0][n:]; r.pieces[0] == "" {
		r.pieces = r.pieces[1:]
	}
	return n, nil
}

// readBy reads everything, so many bytes at a time.
func readBy(r io.Reader, size func() int) (string, error) {
	var b bytes.Buffer
	for {
		p := make([]byte, size())
		n, err := r.Read(p)
		b.Write(p[:n])
		if err != nil {
			return b.String(), err
		}
	}
}
