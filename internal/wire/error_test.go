package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"testing"
)

func TestError(t *testing.T) {
	for _, c := range []struct {
		err     error
		text    string
		timeout bool
	}{
		{io.ErrUnexpectedEOF, "ratelimit: host: unexpected EOF", false},
		{context.Canceled, "ratelimit: host: context canceled", false},
		{context.DeadlineExceeded, "ratelimit: host: context deadline exceeded", true},
		{errHeaderTimeout, "ratelimit: host: no answer within HeaderTimeout", true},
		{&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}, "ratelimit: host: dial tcp: refused", false},
	} {
		var fault net.Error = &Error{Host: "host", Err: c.err}
		if fault.Error() != c.text || fault.Timeout() != c.timeout || !errors.Is(fault, c.err) {
			t.Errorf("%v, %v", fault, fault.Timeout())
		}
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"http://host": "host:80", "https://host": "host:443", "https://host:8443/path": "host:8443",
		"http://[::1]": "[::1]:80", "http://[::1]:8080": "[::1]:8080",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := address(u); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
