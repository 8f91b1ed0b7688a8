package gateway

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// hangUp is a server that closes every connection after it has read a part of a request.
func hangUp(t *testing.T) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			conn.Read(make([]byte, 1<<16))
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// A 502 says what failed, and leaves the decision to try again to the SDK if the call was sent.
func TestUnreachedSaysWhatFailed(t *testing.T) {
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Write([]byte("SSH-2.0 hello\r\n\r\n"))
		conn.Close()
	}))
	defer garbage.Close()
	for base, c := range map[string]struct{ want, retry string }{
		"http://127.0.0.1:1":  {"could not be reached: connection refused", "true"},
		untrusted.URL:         {"could not be reached: its certificate is not valid", "true"},
		"http://" + hangUp(t): {"closed the connection before it answered", ""},
		garbage.URL:           {"has given no valid answer", ""},
	} {
		for _, path := range []string{chat, "/openai/v1/files"} {
			r := newRig(t, "providers: {openai: {base_url: \""+base+"\"}}", mockprovider.Config{})
			a := r.post(t, path, hello)
			if a.status != http.StatusBadGateway || !strings.Contains(a.body, `the provider \"openai\" `+c.want+`"`) || a.header.Get("X-Should-Retry") != c.retry {
				t.Errorf("%s: %d %v %s", base, a.status, a.header, a.body)
			}
			if last := r.last(t); !strings.Contains(last.Error, strings.Split(base, "/")[2]) {
				t.Errorf("%s: the log has %q", base, last.Error)
			}
		}
	}
}

func TestReasonsWithoutNames(t *testing.T) {
	for _, c := range []struct {
		err  error
		sent bool
		want string
	}{
		{&net.DNSError{Name: "vault.internal", IsNotFound: true}, false, "could not be reached: no such host"},
		{&net.DNSError{Name: "vault.internal", Server: "10.0.0.2"}, false, "could not be reached: its name could not be looked up"},
		{&net.DNSError{Name: "vault.internal", IsTimeout: true}, false, "could not be reached: timed out"},
		{errors.New("proxyconnect tcp: vault.internal"), false, "could not be reached"},
		{context.DeadlineExceeded, true, "has not answered in time"},
	} {
		if _, got := reason(&wire.Error{Host: "vault.internal:443", Sent: c.sent, Err: c.err}, c.sent); got != c.want {
			t.Errorf("%v: %q: want %q", c.err, got, c.want)
		}
	}
}
