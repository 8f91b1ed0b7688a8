package message

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"ratelimit: no such key":            "no such key",
		"ratelimit: file: ratelimit: twice": "file: ratelimit: twice",
		"unexpected EOF":                    "unexpected EOF",
		"ratelimit":                         "ratelimit",
	} {
		if got := Plain(errors.New(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestWait(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{0: 0, 1: time.Millisecond, time.Millisecond: time.Millisecond, time.Second + 1: 1001 * time.Millisecond} {
		if got := Wait(wait); got != want {
			t.Errorf("%v: %v; want %v", wait, got, want)
		}
	}
}

func TestDetail(t *testing.T) {
	sentinel := errors.New("ratelimit: invalid call")
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: an id is empty", sentinel), "an id is empty"},
		{errors.New("ratelimit: store: lost"), "ratelimit: store: lost"},
	} {
		if got := Detail(test.err, sentinel); got != test.want {
			t.Errorf("%v: got %q, want %q", test.err, got, test.want)
		}
	}
}
