package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

func TestStreamsAreAsProvidersSendThem(t *testing.T) {
	for _, test := range []struct {
		stream       stream
		atLeast, max int // bytes an event, on average
	}{
		{streams(1000)[0], 230, 330},
		{streams(1000)[1], 110, 150},
	} {
		t.Run(test.stream.name, func(t *testing.T) {
			s := test.stream
			if each := s.size / len(s.events); each < test.atLeast || each > test.max {
				t.Errorf("%d bytes an event, want %d to %d", each, test.atLeast, test.max)
			}
			for _, e := range s.events {
				_, data, ok := strings.Cut(string(e), "data: ")
				data, ended := strings.CutSuffix(data, "\n\n")
				if !ok || !ended || data != "[DONE]" && !json.Valid([]byte(data)) {
					t.Errorf("no event of a stream: %q", e)
				}
			}
		})
	}
}

func TestEveryWayReadsAllOfAStream(t *testing.T) {
	for _, d := range []delivery{
		{"https", "", served(1, true)}, {"an event a flush", "", served(1, false)}, {"bursts", "", served(burstEvents, false)}, {"memory", "", inMemory},
	} {
		for _, s := range streams(100) {
			for _, w := range ways(s) {
				t.Run(d.name+", "+w.of(s), func(t *testing.T) {
					from := d.source(s)
					defer instance{close: from.close}.stop()
					if !w.once(s, from) {
						t.Error("it did not come as it should")
					}
					longer, dearer := s, s
					longer.size++
					dearer.usage.Output++
					if w.once(longer, from) {
						t.Error("a byte is missing, and nobody noticed")
					}
					if w.kind == ours && w.once(dearer, from) {
						t.Error("a token is missing, and nobody noticed")
					}
				})
			}
		}
	}
}

func TestServersSpeakAsTheyShould(t *testing.T) {
	for _, test := range []struct {
		secure bool
		major  int // of HTTP
	}{{true, 2}, {false, 1}} {
		server := serveStream(streams(1)[0], 1, test.secure)
		defer server.Close()
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.ProtoMajor != test.major || (response.TLS != nil) != test.secure {
			t.Errorf("%s with TLS %v, want HTTP/%d with %v", response.Proto, response.TLS != nil, test.major, test.secure)
		}
	}
}

func TestEventReader(t *testing.T) {
	r := &eventReader{events: [][]byte{[]byte("one"), []byte("two")}}
	p := make([]byte, 2)
	for _, want := range []string{"on", "e", "tw", "o"} {
		if n, err := r.Read(p); string(p[:n]) != want || err != nil {
			t.Errorf("%q, %v, want %q", p[:n], err, want)
		}
	}
	if n, err := r.Read(p); n != 0 || err != io.EOF {
		t.Errorf("%d, %v at the end", n, err)
	}
}

func TestEveryReaderReadsEveryBody(t *testing.T) {
	smaller := func(n int) int { return n / 16 }
	sizes := []int{1 << 10, smaller(100 << 10), smaller(10 << 20), smaller(10 << 20)}
	for i, b := range bodies(smaller) {
		t.Run(b.name, func(t *testing.T) {
			if n := len(b.text); n < sizes[i]*99/100 || n > sizes[i]*101/100+200 {
				t.Errorf("%d bytes, want about %d", n, sizes[i])
			}
			if !json.Valid(b.text) || !bytes.Contains(b.text, []byte(`\n`)) || !bytes.Contains(b.text, []byte(`\"`)) {
				t.Error("no JSON with escapes in it")
			}
			other := bytes.Replace(b.text, []byte(bodyModel), []byte("gpt-5o"), 1)
			for _, r := range b.readers() {
				if !r.read(b.text) {
					t.Errorf("%s does not read it", r.name)
				}
				if r.read(other) {
					t.Errorf("%s does not notice another model", r.name)
				}
			}
		})
	}
}

func TestTheImageIsSeenAsOne(t *testing.T) {
	for _, b := range bodies(func(n int) int { return n / 16 }) {
		r, err := llm.Endpoint{Provider: llm.OpenAI, API: llm.Chat}.Read(b.text)
		if text := r.Prompt > len(b.text)/16; err != nil || text == b.image {
			t.Errorf("%s: %d bytes are thought to be %d tokens, %v", b.name, len(b.text), r.Prompt, err)
		}
	}
}

func TestCallsAreCharged(t *testing.T) {
	const made = 3
	for _, test := range []struct {
		transport transport
		requests  int  // that the limiter knows of
		allOfIt   bool // nobody else uses the quota
	}{
		{transports()[0], 0, true},
		{transports()[1], made, true},
		{transports()[2], made, false},
	} {
		t.Run(test.transport.name, func(t *testing.T) {
			c := test.transport.dial()
			defer c.close()
			for range made {
				if !c.call() {
					t.Fatal("a call was not answered")
				}
			}
			got := c.limiter.Stats(bodyModel)
			if used := test.requests * (callInput + callOutput); got.RPM != test.requests || got.TPM != used {
				t.Errorf("%d requests and %d tokens, want %d and %d", got.RPM, got.TPM, test.requests, used)
			}
			if d := c.limiter.Decide(bodyModel, granted.MaxTPM*9/10); d.Allowed != test.allOfIt {
				t.Errorf("nine tenths of the quota: %v, want %v", d.Allowed, test.allOfIt)
			}
		})
	}
}

func TestAddsAtMost(t *testing.T) {
	for _, test := range []struct {
		a, b     float64
		pass     bool
		measured string
	}{
		{115, 100, true, "+15.0%"},
		{116, 100, false, "+16.0%"},
		{90, 100, true, "-10.0%"},
		{1200, 100, false, "12x"},
	} {
		if c := addsAtMost("here", row{value: test.a}, row{value: test.b}, 15); c.pass != test.pass || c.measured != test.measured {
			t.Errorf("%v against %v: %s, pass %v, want %s, %v", test.a, test.b, c.measured, c.pass, test.measured, test.pass)
		}
	}
}
