package main

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
)

// upstream is a provider on loopback that costs as little as one can: it looks no closer at a
// request than to find its end, and answers with bytes that were made before.
type upstream struct {
	net.Listener
	whole  []byte   // the answer to a call that is not streamed
	chunks [][]byte // of a stream, headers first; each is written by itself

	mu   sync.Mutex
	held chan struct{} // streams that are asked to hold go on when this is closed
}

func newUpstream() (*upstream, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &upstream{Listener: l, held: make(chan struct{})}
	u.whole = append(upstreamHead("application/json", fmt.Sprintf("Content-Length: %d", len(callAnswer))), callAnswer...)
	head := upstreamHead("text/event-stream; charset=utf-8", "Transfer-Encoding: chunked")
	for _, e := range gatewayEvents {
		u.chunks = append(u.chunks, fmt.Appendf(head, "%x\r\n%s\r\n", len(e), e))
		head = nil
	}
	u.chunks = append(u.chunks, []byte("0\r\n\r\n"))
	go u.accept()
	return u, nil
}

// upstreamHead is a response's head, as OpenAI sends it.
func upstreamHead(contentType, length string) []byte {
	lines := []string{
		"HTTP/1.1 200 OK",
		"Date: Sat, 15 Nov 2025 14:20:00 GMT",
		"Content-Type: " + contentType,
		length,
		"Openai-Processing-Ms: 412",
		"X-Request-Id: req_5f0d1a3c9b7e4826a1d4c3b2e6f70819",
		"X-Ratelimit-Limit-Requests: " + strconv.Itoa(granted.MaxRPM),
		"X-Ratelimit-Limit-Tokens: " + strconv.Itoa(granted.MaxTPM),
		"X-Ratelimit-Remaining-Requests: " + strconv.Itoa(granted.MaxRPM-1),
		"X-Ratelimit-Remaining-Tokens: " + strconv.Itoa(granted.MaxTPM-callInput-callOutput),
		"X-Ratelimit-Reset-Requests: 1ms",
		"X-Ratelimit-Reset-Tokens: 6ms",
	}
	return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n")
}

// release lets the streams go on that hold now.
func (u *upstream) release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	close(u.held)
	u.held = make(chan struct{})
}

func (u *upstream) holding() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.held
}

func (u *upstream) accept() {
	for {
		c, err := u.Accept()
		if err != nil {
			return
		}
		go u.serve(c)
	}
}

// serve answers one request after another. It hangs up on what it cannot read.
func (u *upstream) serve(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 8<<10)
	for n := 0; n < len(buf); {
		head, length := messageEnd(buf[:n])
		if head > 0 && length < 0 {
			return
		}
		if head == 0 || n < head+length {
			m, err := c.Read(buf[n:])
			if err != nil {
				return
			}
			n += m
			continue
		}
		if err := u.answer(c, buf[head:head+length]); err != nil {
			return
		}
		n = copy(buf, buf[head+length:n])
	}
}

var (
	streamed = []byte(`"stream":true`)
	hold     = []byte(`"user":"hold"`)
)

func (u *upstream) answer(c net.Conn, body []byte) error {
	if !bytes.Contains(body, streamed) {
		_, err := c.Write(u.whole)
		return err
	}
	waits := bytes.Contains(body, hold)
	for i, chunk := range u.chunks {
		if i == 1 && waits {
			<-u.holding()
		}
		if _, err := c.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}

// messageEnd returns how long the head of an HTTP/1.1 message is, 0 if it is not all there, and
// the length of what follows: -1 if the head does not say.
func messageEnd(b []byte) (head, length int) {
	head = bytes.Index(b, []byte("\r\n\r\n"))
	if head < 0 {
		return 0, 0
	}
	head += len("\r\n\r\n")
	const name = "Content-Length: "
	for rest := b[:head]; len(rest) > len(name); {
		line, after, _ := bytes.Cut(rest, []byte("\r\n"))
		if len(line) > len(name) && line[0]|0x20 == 'c' && strings.EqualFold(string(line[:len(name)]), name) {
			n, err := strconv.Atoi(string(line[len(name):]))
			if err != nil {
				return head, -1
			}
			return head, n
		}
		rest = after
	}
	return head, -1
}
