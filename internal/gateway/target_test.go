package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// rawServer is a server that keeps the first line and the Host headers of each request, byte
// for byte, and answers 200. It serves as a provider, or as a forward proxy.
type rawServer struct {
	address string
	mu      sync.Mutex
	heads   []rawHead
}

type rawHead struct {
	line  string
	hosts []string
}

func startRawServer(t testing.TB) *rawServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{address: listener.Addr().String()}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *rawServer) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	var h rawHead
	for first := true; ; first = false {
		line, err := in.ReadString('\n')
		line = strings.TrimRight(line, "\r\n")
		if err != nil || line == "" {
			break
		}
		if name, value, _ := strings.Cut(line, ":"); first {
			h.line = line
		} else if strings.EqualFold(strings.TrimSpace(name), "host") {
			h.hosts = append(h.hosts, strings.TrimSpace(value))
		}
	}
	s.mu.Lock()
	s.heads = append(s.heads, h)
	s.mu.Unlock()
	io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
}

// take returns the requests since it was last called.
func (s *rawServer) take() []rawHead {
	s.mu.Lock()
	defer s.mu.Unlock()
	heads := s.heads
	s.heads = nil
	return heads
}

// targetRig is a gateway in front of raw sockets: the provider "direct", the provider
// "proxied" behind a forward proxy, and a host that is not in the configuration.
type targetRig struct {
	*rig
	provider, proxy, evil *rawServer
}

// proxiedBase is the base_url of the provider behind the proxy. It has no path, so that a text
// that is joined to a host would be joined to this one.
const proxiedBase = "http://provider.test"

func newTargetRig(t testing.TB) *targetRig {
	t.Helper()
	r := &targetRig{provider: startRawServer(t), proxy: startRawServer(t), evil: startRawServer(t)}
	r.rig = newRigBefore(t, fmt.Sprintf("providers: {direct: {base_url: http://%s/base/v0}, proxied: {base_url: %s}}\n", r.provider.address, proxiedBase), http.NotFoundHandler())
	through := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: r.proxy.address})}
	t.Cleanup(through.CloseIdleConnections)
	r.setup.Load().upstreams["proxied"].deployments[0].transport = through
	return r
}

// sendTarget sends the gateway a request with a target, byte for byte, and returns the status.
func (r *rig) sendTarget(t testing.TB, method, target string) string {
	t.Helper()
	address := strings.TrimPrefix(r.url, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer sk\r\nConnection: close\r\n\r\n", method, target, address)
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(answer), " ")
	status, _, _ := strings.Cut(rest, " ")
	return status
}

// check fails if a request was sent to another than a configured host, with another Host
// header, or to a path that is not below the base.
func (r *targetRig) check(t testing.TB) {
	t.Helper()
	for _, h := range r.provider.take() {
		checkHead(t, h, "", r.provider.address, "/base/v0")
	}
	for _, h := range r.proxy.take() {
		checkHead(t, h, proxiedBase, "provider.test", "")
	}
	for _, h := range r.evil.take() {
		t.Errorf("the host of the client's choice got %+v", h)
	}
}

// checkHead checks the Host header of a request, and its target: the origin, which is empty at
// a provider and the provider's at a proxy, and a path below the base.
func checkHead(t testing.TB, h rawHead, origin, host, base string) {
	t.Helper()
	if len(h.hosts) != 1 || h.hosts[0] != host {
		t.Errorf("%q came with Host %q; want %q", h.line, h.hosts, host)
	}
	words := strings.Split(h.line, " ")
	if len(words) != 3 || words[0] == http.MethodConnect {
		t.Errorf("the request line is %q", h.line)
		return
	}
	seen, err := url.ParseRequestURI(words[1])
	if err != nil || !below(strings.ReplaceAll(words[1], "?", "/"), origin+base) {
		t.Errorf("the target is %q: it is not below the base", words[1])
		return
	}
	if seen.User != nil || origin != "" && seen.Host != host || !below(path.Clean(seen.Path), base) {
		t.Errorf("the target is %q: it leads to %q of %q", words[1], seen.Path, seen.Host)
	}
}

// strayTargets are targets with which a client might choose where the provider's key
// goes. NAME stands for a provider and EVIL for an address of the client's choice.
var strayTargets = []struct{ method, target, status string }{
	{"GET", "/NAME/v1/models", "200"},
	{"GET", "/NAME", "200"},
	{"GET", "/NAME/", "200"},
	{"GET", "/NAME?a=b", "200"},
	{"GET", "/NAME/v1/a%2fb", "200"},
	{"GET", "/NAME/@EVIL/steal", "200"},
	{"GET", "/NAME/x?u=http://EVIL/", "200"},
	{"GET", "http://EVIL/NAME/v1/models", "200"},
	{"GET", "/NAME%2f@EVIL/steal", "400"},
	{"GET", "/NAME%2F@EVIL/steal", "400"},
	{"GET", "/NAME%2fv1/models", "400"},
	{"GET", "/NAME@EVIL/steal", "404"},
	{"GET", "/NAME%40EVIL/steal", "404"},
	{"GET", "/NAME:80@EVIL/", "404"},
	{"GET", "/NAME.EVIL/", "404"},
	{"GET", "/NAME%5c@EVIL/", "404"},
	{"GET", "/NAME%00/", "404"},
	{"GET", "/NAME%3f/", "404"},
	{"GET", "/NAME%23/", "404"},
	{"GET", "//EVIL/NAME/v1", "404"},
	{"GET", "/%2fEVIL/NAME", "404"},
	{"GET", "//NAME/v1", "404"},
	{"GET", "*", "404"},
	{"OPTIONS", "*", "404"},
	{"GET", "/NAME//EVIL/steal", "400"},
	{"GET", "/NAME/%2fEVIL/steal", "400"},
	{"GET", "/NAME/..", "400"},
	{"GET", "/NAME/%2e%2e", "400"},
	{"GET", "/NAME/%2e%2e/x", "400"},
	{"GET", "/NAME/..%2fx", "400"},
	{"GET", "/NAME/a/.%20./x", "400"},
	{"GET", "/NAME/a/...%2fx", "400"},
	{"GET", "/NAME/%5cEVIL", "400"},
	{"GET", "/NAME/\\EVIL", "400"},
	{"GET", "/NAME/%00", "400"},
	{"GET", "/NAME/%0d%0aHost:%20EVIL", "400"},
	{"GET", "/NAME/;@EVIL/", "400"},
	{"GET", "/NAME/x?a#@EVIL/", "400"},
	{"GET", "/NAME/#@EVIL/", "400"},
	{"GET", "http:NAME/v1", "404"},
	{"GET", "http://NAME", "404"},
	{"GET", "http://u:p@EVIL//NAME", "404"},
	{"GET", "NAME/v1", "400"},
	{"GET", "@EVIL/NAME", "400"},
	{"CONNECT", "EVIL", "405"},
	{"CONNECT", "/NAME/v1", "405"},
}

func (r *targetRig) spell(text, provider string) string {
	return strings.NewReplacer("NAME", provider, "EVIL", r.evil.address).Replace(text)
}

// No path lets a client choose the host. Once, the gateway joined the text after the provider's
// name to the host: with an escaped slash, the provider's key went to a host of the client's
// choice.
func TestTheClientDoesNotChooseTheHost(t *testing.T) {
	r := newTargetRig(t)
	for _, c := range strayTargets {
		for _, provider := range []string{"direct", "proxied"} {
			target := r.spell(c.target, provider)
			if got := r.sendTarget(t, c.method, target); got != c.status {
				t.Errorf("%s %s: %s; want %s", c.method, target, got, c.status)
			}
			r.check(t)
		}
	}
	for _, spelled := range []string{"/direc%74/v1", "/%64irect/v1", "/%64irect%2fv1"} {
		if got := r.sendTarget(t, "GET", spelled); got != "400" {
			t.Errorf("%s: %s; want 400", spelled, got)
		}
	}
	r.check(t)
}

// Whatever a client sends as the target of a request, the gateway sends requests only to
// configured providers.
func FuzzTarget(f *testing.F) {
	for _, c := range strayTargets {
		f.Add(c.method, c.target)
	}
	r := newTargetRig(f)
	f.Fuzz(func(t *testing.T, method, target string) {
		if strings.ContainsAny(method+target, "\r\n") {
			t.Skip("it is more than one line")
		}
		for _, provider := range []string{"direct", "proxied"} {
			r.sendTarget(t, method, r.spell(target, provider))
			r.check(t)
		}
	})
}

// A proxy that the environment names gets only requests to the configured host. Go reads the
// environment once in a process, so the gateway runs in a process of its own.
func TestTheClientDoesNotChooseTheHostBehindHTTPProxy(t *testing.T) {
	const childsTurn = "GATEWAY_TEST_BEHIND_PROXY"
	if os.Getenv(childsTurn) != "" {
		r := newRigBefore(t, "providers: {proxied: {base_url: "+proxiedBase+"}}\n", http.NotFoundHandler())
		for _, target := range []string{"/proxied/v1/models", "/proxied%2f@127.0.0.1:29999/steal", "/proxied//evil.test/steal", "http://evil.test/proxied/v1"} {
			r.sendTarget(t, "GET", target)
		}
		return
	}
	proxy := startRawServer(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), childsTurn+"=1", "HTTP_PROXY=http://"+proxy.address, "http_proxy=", "NO_PROXY=", "no_proxy=")
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	heads := proxy.take()
	if len(heads) == 0 {
		t.Error("nothing came through the proxy")
	}
	for _, h := range heads {
		checkHead(t, h, proxiedBase, "provider.test", "")
	}
}

// The last check does not let a request go to another server than its deployment's.
func TestARequestToAnotherServerIsNotSent(t *testing.T) {
	base, _ := url.Parse("https://provider.test/base")
	d := &deployment{base: base}
	for _, c := range []struct {
		why    string
		change func(*http.Request)
		want   bool
	}{
		{"nothing", func(*http.Request) {}, true},
		{"the base itself", func(r *http.Request) { r.URL.Path = "/base" }, true},
		{"an escaped slash", func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/base/a/b", "/base/a%2fb" }, true},
		{"another scheme", func(r *http.Request) { r.URL.Scheme = "http" }, false},
		{"another host", func(r *http.Request) { r.URL.Host = "evil.test" }, false},
		{"another Host", func(r *http.Request) { r.Host = "evil.test" }, false},
		{"no Host", func(r *http.Request) { r.Host = "" }, false},
		{"a user", func(r *http.Request) { r.URL.User = url.User("u") }, false},
		{"an opaque URL", func(r *http.Request) { r.URL.Opaque = "//evil.test" }, false},
		{"a path beside the base", func(r *http.Request) { r.URL.Path = "/basement" }, false},
		{"a path above the base", func(r *http.Request) { r.URL.Path = "/" }, false},
		{"a path out of the base", func(r *http.Request) { r.URL.Path = "/base/../x" }, false},
		{"an escaped slash behind the base", func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/base/@evil", "/base%2f@evil" }, false},
	} {
		r := &http.Request{Host: "provider.test", URL: &url.URL{Scheme: "https", Host: "provider.test", Path: "/base/v1/models"}}
		c.change(r)
		if got := d.receives(r); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
	var sent wire.Pieces
	x := &exchange{r: &http.Request{URL: &url.URL{}}, target: url.URL{Path: "ment/x"}, cfg: gatewaytest.Config(t, "", ""), ctx: t.Context()}
	x.upstream = &upstream{Upstream: &config.Upstream{}}
	if _, err := x.send(d, &sent, 0); err != errWrongTarget {
		t.Errorf("a path that does not begin with / is sent: %v", err)
	}
}
