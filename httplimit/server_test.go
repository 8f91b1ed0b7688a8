package httplimit

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
)

// protocols are real servers and clients on loopback.
var protocols = []struct {
	name  string
	major int
	start func(t *testing.T, h http.Handler) (url string, client *http.Client)
}{
	{"http/1.1", 1, func(t *testing.T, h http.Handler) (string, *http.Client) {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL, s.Client()
	}},
	{"h2", 2, func(t *testing.T, h http.Handler) (string, *http.Client) {
		s := httptest.NewUnstartedServer(h)
		s.EnableHTTP2 = true
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL, s.Client()
	}},
	{"h2c", 2, func(t *testing.T, h http.Handler) (string, *http.Client) {
		s := httptest.NewUnstartedServer(h)
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
		t.Cleanup(s.Close)
		transport := &http.Transport{Protocols: s.Config.Protocols}
		t.Cleanup(transport.CloseIdleConnections)
		return s.URL, &http.Client{Transport: transport}
	}},
}

// get sends a request of project p.
func get(t *testing.T, client *http.Client, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(HeaderProjectID, "p")
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func TestOverTheWire(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			limiter := newLimiter(t, project.Limit{RequestsPerMinute: 3, RequestsPerDay: 100})
			url, client := p.start(t, Middleware(limiter)(&fine{}))
			for i := range 5 {
				response := get(t, client, url)
				body, err := io.ReadAll(response.Body)
				if err != nil || response.ProtoMajor != p.major {
					t.Fatal(response.Proto, err)
				}
				policy := parse(t, response.Header, "RateLimit-Policy")
				if len(policy) != 2 || policy[0] != minutePolicy(3) {
					t.Errorf("RateLimit-Policy: %+v", policy)
				}
				limits := parse(t, response.Header, "RateLimit")
				if i < 3 {
					if response.StatusCode != 200 || string(body) != "fine" || len(limits) != 2 || limits[0].r != int64(2-i) {
						t.Errorf("%d: %s: %+v", response.StatusCode, body, limits)
					}
					continue
				}
				problem := parseProblem(t, response.Header, body)
				if response.StatusCode != 429 || !slices.Equal(problem.Violated, []string{"requests_per_minute"}) {
					t.Errorf("%d: %+v", response.StatusCode, problem)
				}
				after, err := strconv.ParseInt(response.Header.Get("Retry-After"), 10, 64)
				if err != nil || len(limits) != 1 || after < limits[0].t || limits[0].t < 1 || limits[0].t > 60 {
					t.Errorf("Retry-After %v: %+v", after, limits)
				}
			}
		})
	}
}

func minutePolicy(q int64) member {
	return member{name: "requests_per_minute", r: -1, t: -1, q: q, w: 60}
}

// demanding is a handler that uses everything a ResponseWriter of the server can do.
func demanding(t *testing.T, file string, heardFirst <-chan struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/stream", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "1")
		w.(http.Flusher).Flush()
		<-heardFirst // the client has the first byte before the second is written
		io.WriteString(w, "2")
	})
	mux.HandleFunc("/trailer", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "4")
	})
	mux.HandleFunc("/deadline", func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(io.ReaderFrom); ok != (r.ProtoMajor == 1) {
			t.Errorf("%s: ReadFrom is there: %v", r.Proto, ok)
		}
		http.ServeFile(w, r, file)
	})
	mux.HandleFunc("/push", func(w http.ResponseWriter, r *http.Request) {
		pusher, ok := w.(http.Pusher)
		if ok != (r.ProtoMajor == 2) {
			t.Errorf("%s: Push is there: %v", r.Proto, ok)
		}
		if ok {
			pusher.Push("/stream", nil) // fails, because the client accepts no pushes
		}
	})
	return mux
}

// A handler behind the limits can do everything with its writer that it can do without.
func TestWriterCanDoEverything(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	content := bytes.Repeat([]byte("0123456789"), 100_000)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			heardFirst := make(chan struct{})
			h := Middleware(newLimiter(t, project.Limit{RequestsPerDay: 100}))(demanding(t, file, heardFirst))
			url, client := p.start(t, h)

			response := get(t, client, url+"/stream")
			first := make([]byte, 1)
			_, err := io.ReadFull(response.Body, first)
			close(heardFirst)
			if err != nil || string(first) != "1" {
				t.Fatal(first, err)
			}
			if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != "2" {
				t.Error(string(rest), err)
			}

			response = get(t, client, url+"/trailer")
			if _, err := io.ReadAll(response.Body); err != nil || response.Trailer.Get("X-Sum") != "4" {
				t.Error(response.Trailer, err)
			}
			if got := get(t, client, url+"/deadline").StatusCode; got != 200 {
				t.Error(got)
			}
			response = get(t, client, url+"/file")
			if body, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(body, content) {
				t.Error(len(body), err)
			}
			if got := get(t, client, url+"/push").StatusCode; got != 200 {
				t.Error(got)
			}
		})
	}
}

func TestHijack(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		line, err := buffered.ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		io.WriteString(conn, strings.ToUpper(line))
	})
	server := httptest.NewServer(Middleware(newLimiter(t, project.Limit{RequestsPerDay: 1}))(h))
	defer server.Close()
	answer := sendRaw(t, server.Listener.Addr(), "GET / HTTP/1.1\r\nHost: x\r\nX-Project-ID: p\r\n\r\nhello\n")
	if answer != "HELLO\n" {
		t.Errorf("%q", answer)
	}
}

// sendRaw sends a text to a server, and returns its whole answer.
func sendRaw(t testing.TB, to net.Addr, text string) string {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(context.Background(), to.Network(), to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
