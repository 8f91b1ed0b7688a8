package dialect

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

const (
	chatHead = `data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"`
	chatTail = `"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
)

// templateEvents are events, with T in the place of the varying text, and whether they make a
// template.
var templateEvents = []struct {
	name, event string
	want        bool
}{
	{"chat", chatHead + "T" + chatTail, true},
	{"chat, another choice", strings.Replace(chatHead, ":0", ":1", 1) + "T" + chatTail, true},
	{"with spaces", `data: {"choices": [{"delta": {"content": "T"}}]}` + "\n\n", true},
	{"CR LF", strings.ReplaceAll(chatHead+"T"+chatTail, "\n", "\r\n"), true},
	{"a name and a comment", "event: x\n: y\ndata:" + `{"type":"content_block_delta","delta":{"type":"text_delta","text":"T"}}` + "\nid: 1\n\n", true},
	{"reasoning", `data: {"choices":[{"delta":{"reasoning":"T"}}]}` + "\n\n", true},
	{"reasoning, under another name", `data: {"choices":[{"delta":{"reasoning_content":"T","content":null}}]}` + "\n\n", true},
	{"an empty text beside it", `data: {"choices":[{"delta":{"content":"T","refusal":""}}]}` + "\n\n", true},
	{"two lines of data", "data: {\"choices\":[{\ndata: \"delta\":{\"content\":\"T\"}}]}\n\n", true},
	{"an array", `data: [{"delta":"T"}]` + "\n\n", true},
	{"garbage after it", `data: {"delta":"T"} what?` + "\n\n", true},

	{"CR", strings.ReplaceAll(chatHead+"T"+chatTail, "\n", "\r"), false},
	{"CR at the end", strings.TrimSuffix(chatHead+"T"+chatTail, "\n") + "\r", false},
	{"an escape", chatHead + `T\n` + chatTail, false},
	{"two texts", `data: {"choices":[{"delta":{"content":"T","refusal":"no"}}]}` + "\n\n", false},
	{"a text before it", `data: {"choices":[{"delta":{"refusal":"no","content":"T"}}]}` + "\n\n", false},
	{"reasoning under both names", `data: {"choices":[{"delta":{"reasoning":"T","reasoning_content":"T"}}]}` + "\n\n", false},
	{"reasoning under both names, short", `data: {"choices":[{"delta":{"reasoning":"T","reasoning_content":"a"}}]}` + "\n\n", false},
	{"text in arguments", `data: {"output":[{"arguments":{"a":"T"}}]}` + "\n\n", false},
	{"two values", `data: {"delta":"T"}{"delta":"y"}` + "\n\n", false},
	{"two values on lines", `data: {"delta":"T"}` + "\n" + `data: {"delta":"y"}` + "\n\n", false},
	{"a number before it", `data: {"usage":{"prompt_tokens":7},"delta":"T"}` + "\n\n", false},
	{"a number after it", `data: {"delta":"T","usage":{"completion_tokens":3}}` + "\n\n", false},
	{"a number in another value", `data: {"delta":"T"}{"eval_count":3}` + "\n\n", false},
	{"an error before it", `data: {"error":{"code":429},"delta":"T"}` + "\n\n", false},
	{"an error after it", `data: {"delta":"T","error":"overloaded"}` + "\n\n", false},
	{"the type of an error", `data: {"delta":"T","type":"error"}` + "\n\n", false},
	{"sound", `data: {"type":"response.audio.delta","delta":"T"}` + "\n\n", false},
	{"sound, said after it", `data: {"delta":"T","type":"response.audio.delta"}` + "\n\n", false},
	{"usage and text", `data: {"choices":[],"usage":{},"delta":"T"}` + "\n\n", true},
	{"usage alone", `data: {"choices":[],"usage":{},"id":"T"}` + "\n\n", false},
	{"no text", `data: {"id":"T","choices":[]}` + "\n\n", false},
	{"not complete", `data: {"delta":"T"` + "\n\n", false},
	{"broken in the text", "data: {\"delta\":\"T\ndata: \"}\n\n", false},
	{"no data", `: {"delta":"T"}` + "\n\n", false},
	{"the end", "data: [DONE]\n\n", false},
	{"nothing", "\n", false},
	{"too long", chatHead + "T" + strings.Repeat("x", maxTemplate) + chatTail, false},
}

// templateTexts are the texts that replace T.
var templateTexts = []string{
	"T", "", " limits", "日本", "é", "\xe6", "\x80\x80", "\t", "a long text that goes on and on and on and on", `\n`, `\"`, `\\`, `\u00e9`, `\udc00`, `\`, `\u00`,
	"a\nb", "a\n\nb", "a\rb", `"`, `","content":"`, `"}}]}` + "\n\n" + chatHead,
}

// TestTemplateLearns checks which events make a template.
func TestTemplateLearns(t *testing.T) {
	for _, tt := range templateEvents {
		e := events{json: values{top: commonTop}}
		for range 8 {
			if _, ended := e.next([]byte(tt.event)); ended {
				e.end()
			}
		}
		if got := e.matchTemplate([]byte(tt.event)) == len(tt.event); got != tt.want {
			t.Errorf("%s: learned is %t, want %t", tt.name, got, tt.want)
		}
	}
}

// Events that fit a template name its service tier, and the last one that is named counts.
func TestTemplateTier(t *testing.T) {
	for _, event := range []string{
		`data: {"service_tier":"flex","choices":[{"delta":{"content":"T"}}]}` + "\n\n",
		`data: {"choices":[{"delta":{"content":"T"}}],"service_tier":"flex"}` + "\n\n",
	} {
		e := events{json: values{top: commonTop}}
		for _, next := range []string{event, event, event, event, `data: {"service_tier":"priority"}` + "\n\n", event} {
			if _, ended := e.next([]byte(next)); ended {
				e.end()
			}
		}
		if e.matchTemplate([]byte(event)) == 0 || e.json.tier != tierFlex {
			t.Errorf("the tier is %q after %s", e.json.tier, event)
		}
	}
}

// After a change of events, the template soon fits the new ones.
func TestTemplateChanges(t *testing.T) {
	e := events{json: values{top: commonTop}}
	next := func(event string) (repeats bool) {
		repeats = e.matchTemplate([]byte(event)) > 0
		if _, ended := e.next([]byte(event)); ended {
			e.end()
		}
		return repeats
	}
	next(templateEvents[0].event)
	next(templateEvents[1].event)
	for _, tt := range slices.Concat(templateEvents, templateEvents) {
		hit := !tt.want
		for range 6 {
			hit = tt.want && next(tt.event) || hit
		}
		if !hit {
			t.Errorf("%s: not learned after others", tt.name)
		}
	}
}

// Only bytes that begin an event are compared with a template.
func TestTemplateBegins(t *testing.T) {
	event := chatHead + "T" + chatTail
	for _, before := range []string{
		":", "data", "data:", "data: ", "data: {", "data: {}", "data: {\n", "data: {\"id\":\"", "data: {}\n", "data: what?\n", "data: [\n", "id: 1\n", "\r",
		"data: {\"choices\":[],\"usage\":{}}\n", "data: {\"choices\":[],\"usage\":{}}\r", "data: {\"delta\":\"y\"}\n",
	} {
		pieces := []string{event, event, event, event, before, event, event}
		if got, want := read(pieces), read(split(strings.Join(pieces, ""))); got != want {
			t.Errorf("after %q: got %#v\nwant %#v", before, got, want)
		}
	}
}

// TestTemplatePairs lets every event follow those that make a template.
func TestTemplatePairs(t *testing.T) {
	for _, a := range templateEvents {
		for _, b := range templateEvents {
			if a.want {
				sameByBytes(t, strings.Repeat(a.event, 4)+b.event+a.event+strings.Repeat(b.event, 6), func() int { return 500 })
			}
		}
	}
}

// FuzzTemplate reads streams with many repeats, cut and split anywhere.
func FuzzTemplate(f *testing.F) {
	for i, tt := range templateEvents {
		head, tail, _ := strings.Cut(tt.event, "T")
		for j, text := range templateTexts {
			f.Add(head, text, tail, uint64(100*i+j))
		}
	}
	f.Fuzz(func(t *testing.T, head, text, tail string, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		var b strings.Builder
		other := templateEvents[r.IntN(len(templateEvents))].event
		for range r.IntN(30) {
			event := head + "T" + tail
			if r.IntN(8) == 0 {
				event = other
			}
			with := templateTexts[r.IntN(9)]
			switch r.IntN(6) {
			case 0:
				with = text
			case 1:
				with = templateTexts[r.IntN(len(templateTexts))]
			}
			b.WriteString(strings.Replace(event, "T", with, 1))
		}
		stream := b.String()
		sameByBytes(t, stream[:len(stream)-r.IntN(min(len(stream), 50)+1)], func() int { return 1 + r.IntN(1+r.IntN(900)) })
	})
}

// outcome is everything that a meter shows.
type outcome struct {
	usage  llm.Usage
	fault  string
	passed string // the bytes that were not hidden
}

// sameByBytes checks that the pieces in which a stream is read do not matter. A template never
// matches single bytes.
func sameByBytes(t *testing.T, stream string, size func() int) {
	t.Helper()
	var pieces []string
	for rest := stream; rest != ""; {
		n := min(len(rest), size())
		pieces = append(pieces, rest[:n])
		rest = rest[n:]
	}
	want := read(split(stream))
	for _, p := range [][]string{{stream}, pieces} {
		if got := read(p); got != want {
			t.Fatalf("in %d pieces: got %#v\nwant %#v\nof %q", len(p), got, want, stream)
		}
	}
}

// split cuts a stream into single bytes.
func split(stream string) []string {
	pieces := make([]string, len(stream))
	for i := range pieces {
		pieces[i] = stream[i : i+1]
	}
	return pieces
}

// read reads a stream in these pieces, through Hide.
func read(pieces []string) outcome {
	m := NewMeter(Chat, nil)
	for _, p := range pieces {
		_, _ = m.Write([]byte(p))
	}
	hiding := NewMeter(Chat, nil)
	passed, _ := io.ReadAll(hiding.Hide(&piecewise{slices.Clone(pieces)}))
	o := outcome{m.Usage(), m.Fault(), string(passed)}
	if hiding.Usage() != o.usage || hiding.Fault() != o.fault {
		o.passed = "metered something else"
	}
	return o
}

// piecewise is a stream that comes in pieces.
type piecewise struct{ pieces []string }

func (r *piecewise) Read(p []byte) (int, error) {
	if len(r.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.pieces[0])
	if r.pieces[0] = r.pieces[0][n:]; r.pieces[0] == "" {
		r.pieces = r.pieces[1:]
	}
	return n, nil
}

// templateStreams are streams of numbered events, and whether they make a template.
var templateStreams = []struct {
	name  string
	event func(i int) string
	want  bool
}{
	{"repeat", func(i int) string { return chatHead + fmt.Sprint(1000+i) + chatTail }, true},
	{"one in five has escapes", func(i int) string { return chatHead + strings.Repeat(`\n`, max(0, i%5-3)) + chatTail }, true},
	{"blocks of ten", func(i int) string { return choice(i/10%2) + "T" + chatTail }, true},
	{"two choices", func(i int) string { return choice(i%2) + "T" + chatTail }, false},
	{"numbered", func(i int) string {
		return fmt.Sprintf(`data: {"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_67c9fdcf37fc8190ba82116e33fb28c5","delta":" dream"}`+"\n\n", 1000+i)
	}, false},
	{"padded", func(i int) string {
		return chatHead + "T" + strings.Replace(chatTail, "}\n", fmt.Sprintf(`,"obfuscation":"%d"}`, 1000+i)+"\n", 1)
	}, false},
}

func choice(i int) string { return strings.Replace(chatHead, ":0", fmt.Sprint(":", i), 1) }

// A template is made where it is of use, and events allocate nothing either way.
func TestTemplateStreams(t *testing.T) {
	for _, s := range templateStreams {
		m, events := NewMeter(Chat, nil), thousand(s.event)
		n := testing.AllocsPerRun(10, func() {
			for _, e := range events {
				_, _ = m.Write(e)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
		if got := len(m.stream.template.tail) > 0; got != s.want {
			t.Errorf("%s: a template is made: %t, want %t", s.name, got, s.want)
		}
	}
}

// BenchmarkTemplate reads streams of 1000 events.
func BenchmarkTemplate(b *testing.B) {
	for _, s := range templateStreams {
		b.Run(s.name, func(b *testing.B) {
			events := thousand(s.event)
			b.SetBytes(int64(len(bytes.Join(events, nil))))
			b.ReportAllocs()
			for b.Loop() {
				m := NewMeter(Chat, nil)
				for _, e := range events {
					_, _ = m.Write(e)
				}
			}
		})
	}
}

// thousand returns the events of a stream.
func thousand(event func(i int) string) [][]byte {
	events := make([][]byte, 1000)
	for i := range events {
		events[i] = []byte(event(i))
	}
	return events
}
