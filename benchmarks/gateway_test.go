package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMessageEnd(t *testing.T) {
	for _, test := range []struct {
		message      string
		head, length int
	}{
		{"", 0, 0},
		{"POST / HTTP/1.1\r\nHost: a\r\n", 0, 0},
		{"POST / HTTP/1.1\r\n\r\n", 19, -1},
		{"POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\nabc", 39, 12},
		{"POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 0\r\nX: y\r\n\r\n", 53, 0},
		{"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", 41, -1},
		{"POST / HTTP/1.1\r\nX-Content-Length: 3\r\n\r\n", 40, -1},
		{"POST / HTTP/1.1\r\nX: y\r\n\r\nContent-Length: 3\r\n\r\n", 25, -1},
	} {
		if head, length := messageEnd([]byte(test.message)); head != test.head || length != test.length {
			t.Errorf("%q: %d, %d, want %d, %d", test.message, head, length, test.head, test.length)
		}
	}
}

func newTestUpstream(t *testing.T) *upstream {
	t.Helper()
	u, err := newUpstream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return u
}

// TestUpstreamReadsRequestsHoweverTheyCome sends them byte by byte, and two at once.
func TestUpstreamReadsRequestsHoweverTheyCome(t *testing.T) {
	u := newTestUpstream(t)
	to := direct(u.Addr().String())
	two := append(wholeCall().request(to), streamedCall().request(to)...)
	for _, test := range []struct {
		name string
		part int
	}{{"byte by byte", 1}, {"in parts", 700}, {"at once", len(two)}} {
		t.Run(test.name, func(t *testing.T) {
			c, err := net.Dial("tcp", to.Address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			go func() {
				for b := two; len(b) > 0; b = b[min(test.part, len(b)):] {
					if _, err := c.Write(b[:min(test.part, len(b))]); err != nil {
						return
					}
				}
			}()
			r := bufio.NewReader(c)
			for _, want := range [][]byte{callAnswer, bytes.Join(gatewayEvents, nil)} {
				response, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				if body, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(body, want) {
					t.Errorf("%q, %v, want %q", body, err, want)
				}
			}
		})
	}
}

func TestUpstreamHangsUpOnWhatItCannotRead(t *testing.T) {
	u := newTestUpstream(t)
	for _, request := range []string{
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nX: " + strings.Repeat("y", 9<<10),
	} {
		c, err := net.Dial("tcp", u.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		if answer, _ := io.ReadAll(c); len(answer) > 0 {
			t.Errorf("it answered %q", answer)
		}
		c.Close()
	}
}

// TestVisitorsNoticeWhatIsWrong has them ask servers that answer wrongly.
func TestVisitorsNoticeWhatIsWrong(t *testing.T) {
	right := string(newTestUpstream(t).whole)
	for _, test := range []struct{ name, answer, want string }{
		{"nothing", "", "after 0 bytes: EOF"},
		{"a part", right[:len(right)-1], fmt.Sprintf("after %d bytes: EOF", len(right)-1)},
		{"a status", strings.Replace(right, "200 OK", "429 Too Many Requests", 1), "not the answer that was expected"},
		{"a letter", right[:len(right)-1] + "]", "not the answer that was expected"},
		{"none of it", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n", "not the answer that was expected"},
		{"right", right, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := visitOnce(t, test.answer)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// visitOnce visits a server that answers so, and hangs up.
func visitOnce(t *testing.T, answer string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to, d := direct(l.Addr().String()), wholeCall()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := io.ReadFull(c, make([]byte, len(d.request(to)))); err == nil {
			io.WriteString(c, answer)
		}
	}()
	all, err := newGuests(1, to, d)
	if err != nil {
		t.Fatal(err)
	}
	defer all.leave()
	_, _, err = all.visit(0)
	return err
}

// TestEveryProxyPassesCallsOn has each answer as the provider does, again and again on the same
// connection.
func TestEveryProxyPassesCallsOn(t *testing.T) {
	u := newTestUpstream(t)
	for _, p := range proxies() {
		t.Run(p.name, func(t *testing.T) {
			proxy, err := p.run(u.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.stop()
			for _, d := range []dialogue{wholeCall(), streamedCall()} {
				v, err := newVisitor(proxy.door, d)
				if err != nil {
					t.Fatal(err)
				}
				defer v.conn.Close()
				for range 3 {
					if err := v.ask(); err != nil {
						t.Fatal(err)
					}
					if err := v.look(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

func TestProxyThatThereIsNot(t *testing.T) {
	if _, err := (proxy{name: "nobody"}).run("127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "nobody does not start") {
		t.Errorf("%v, want that it does not start", err)
	}
}

func TestProfilesOfProxies(t *testing.T) {
	dir := t.TempDir()
	b := tiny()
	b.profiles = dir
	s := choose(scenarios(), regexp.MustCompile("^gateway/json$"))[0]
	if _, err := s.run(b); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"gateway-json-gateway-memory.cpu", "gateway-json-*ReverseProxy.allocs"} {
		if files, _ := filepath.Glob(filepath.Join(dir, pattern)); len(files) != 1 {
			t.Errorf("%d files %s", len(files), pattern)
		}
	}
}

// TestBefore has a build of this program, itself, stand beside it.
func TestBefore(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := tiny()
	b.before = self
	got, err := choose(scenarios(), regexp.MustCompile("^gateway/json$"))[0].run(b)
	if err != nil {
		t.Fatal(err)
	}
	var figures []string
	for _, c := range got.checks {
		figures = append(figures, c.figure)
	}
	for _, want := range []string{"gateway/json: gateway, memory, requests of gateway, memory, before", "gateway/json: gateway, SQLite, requests of gateway, SQLite, before"} {
		if !slices.Contains(figures, want) {
			t.Errorf("%q: there is no %q", figures, want)
		}
	}
}

func TestAgainst(t *testing.T) {
	all := contenders{
		{name: nameGateway, rounds: []round{{rate: 10, first: 5}, {rate: 40, first: 7}, {rate: 90, first: 3}}},
		{name: nameGatewaySQLite, rounds: []round{{rate: 8}, {rate: 15}, {rate: 20}}},
		{name: nameReverse, rounds: []round{{rate: 10, first: 1}, {rate: 20, first: 2}, {rate: 100, first: 300}}},
	}
	want := []check{
		{"here: gateway, memory, requests of httputil.ReverseProxy", "at least 100%", "100%", true},
		{"here: gateway, SQLite, requests of httputil.ReverseProxy", "at least 75%", "75%", true},
		{"here: gateway, memory, first byte, p50, over httputil.ReverseProxy", "less than 100 µs", "4", true},
	}
	for i, c := range asFastAndSoon("here", all) {
		if c != want[i] {
			t.Errorf("%+v, want %+v", c, want[i])
		}
	}
}

func TestQuantile(t *testing.T) {
	var visits []visit
	for i := range 100 {
		visits = append(visits, visit{all: time.Duration(100-i) * time.Microsecond})
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 51, 0.99: 100, 1: 100} {
		if got := quantile(visits, q, visit.whole); got != want {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
}
