package llm_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"testing"
	"testing/iotest"

	"dappco.re/go/core/go-ratelimit/llm"
)

// metered is what a meter makes of a body.
type metered struct {
	Usage llm.Usage
	Fault string
}

// meter writes the pieces to a meter.
func meter(api llm.API, h http.Header, pieces ...string) metered {
	m := llm.NewMeter(api, h)
	for _, p := range pieces {
		_, _ = m.Write([]byte(p))
	}
	return metered{m.Usage(), m.Fault()}
}

// bytewise returns the bytes of a body, one in a piece.
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
			body := zip(t, s.body)
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

var _ = iotest.ErrTimeout
