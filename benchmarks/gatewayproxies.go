package main

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"

	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// proxy is one way to stand between a client and its provider.
type proxy struct {
	name  string
	kind  kind
	start func(upstream string) (door, error) // serves until the process ends

	program string // that runs it; empty: this one
}

// door is where clients find the provider behind a proxy.
type door struct {
	Address string
	Path    string // before the provider's own
	Secret  string // the client's key
	Admin   string // the address of the admin API; empty: there is none
}

// callPath is the provider's own.
const callPath = "/v1/chat/completions"

const (
	nameDirect  = "no proxy"
	nameWire    = "net/http and internal/wire, no limits"
	nameReverse = "httputil.ReverseProxy"
)

// proxies are all but the floor of having none.
func proxies() []proxy {
	return []proxy{
		{name: nameWire, kind: floor, start: wireProxy},
		{name: nameGateway, kind: ours, start: gatewayInMemory},
		{name: nameGatewaySQLite, kind: ours, start: gatewayOnSQLite},
		{name: nameReverse, kind: peer, start: reverseProxy},
	}
}

// serve has a handler answer on loopback.
func serve(h http.Handler) (door, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return door{}, err
	}
	go http.Serve(l, h)
	return direct(l.Addr().String()), nil
}

// direct is the door of whoever passes everything on as it is.
func direct(address string) door { return door{Address: address, Secret: "sk-0123456789abcdef"} }

// reverseProxy is the standard library's, as one tunes it for this: connections are kept, and
// buffers used again. It flushes event streams by itself; set to flush everything, it would take
// longer for what is no stream.
func reverseProxy(upstream string) (door, error) {
	target := &url.URL{Scheme: "http", Host: upstream}
	p := &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:  &http.Transport{MaxIdleConnsPerHost: 1 << 14, DisableCompression: true},
		BufferPool: &buffers{},
	}
	return serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Else the server closes the request's body when the answer begins, at which the
		// transport may still look for its end: it then breaks off an answer now and then.
		_ = http.NewResponseController(w).EnableFullDuplex()
		p.ServeHTTP(w, r)
	}))
}

// buffers is a pool for ReverseProxy.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.pool.Put(&p) }

// wireProxy is what a handler of net/http that does nothing but pass calls on takes, over the
// gateway's own transport.
func wireProxy(upstream string) (door, error) {
	var (
		t = &wire.Transport{}
		b = &buffers{}
	)
	return serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := &http.Request{Method: r.Method, URL: &url.URL{Scheme: "http", Host: upstream, Path: r.URL.Path}, Header: r.Header,
			Body: &wire.Pieces{body}, ContentLength: int64(len(body))}
		response, err := t.RoundTrip(out.WithContext(r.Context()))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		maps.Copy(w.Header(), response.Header)
		w.WriteHeader(response.StatusCode)
		buf := b.Get()
		defer b.Put(buf)
		pass(w, response, buf)
	}))
}

// pass copies a response's body, and flushes what it reads of one whose end is not known.
func pass(w http.ResponseWriter, r *http.Response, buf []byte) {
	flush := http.NewResponseController(w).Flush
	for {
		n, err := r.Body.Read(buf)
		if _, failed := w.Write(buf[:n]); failed != nil || err != nil {
			return
		}
		if r.ContentLength < 0 && flush() != nil {
			return
		}
	}
}
