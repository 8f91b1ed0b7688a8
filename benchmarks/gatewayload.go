package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// dialogue is the body of a request, and that of the answer which has to come back.
type dialogue struct{ text, want []byte }

// request is all of it, as an SDK sends it.
func (d dialogue) request(to door) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Accept: application/json\r\nUser-Agent: OpenAI/Go 3.90.0\r\nX-Stainless-Lang: go\r\nX-Stainless-Retry-Count: 0\r\nContent-Length: %d\r\n\r\n%s",
		to.Path+callPath, to.Secret, len(d.text), d.text)
}

// visitor is a client with one connection, that asks the same over and over.
type visitor struct {
	conn   net.Conn
	say    []byte
	turns  [][]byte // what it says in turn, in place of say; empty: it says the same over and over
	want   []byte
	buf    []byte // what was read of the answer is in the first n bytes
	n      int
	asked  int
	visits []visit // of this turn
}

// visit is how long the first byte of an answer's body, and all of it, took to come.
type visit struct{ first, all time.Duration }

func (v visit) firstByte() time.Duration { return v.first }
func (v visit) whole() time.Duration     { return v.all }

func newVisitor(to door, d dialogue) (*visitor, error) {
	c, err := net.Dial("tcp", to.Address)
	if err != nil {
		return nil, err
	}
	return &visitor{conn: c, say: d.request(to), want: d.want, buf: make([]byte, 16<<10)}, nil
}

// readEvery is how many answers pass until one is read as a client would.
const readEvery = 64

// ask sends the request and reads the answer.
func (v *visitor) ask() error {
	if len(v.turns) > 0 {
		v.say = v.turns[v.asked%len(v.turns)]
	}
	start := time.Now()
	if err := v.begin(); err != nil {
		return err
	}
	first := time.Since(start)
	if err := v.end(); err != nil {
		return err
	}
	v.visits = append(v.visits, visit{first, time.Since(start)})
	v.asked++
	if v.asked%readEvery == 1 {
		return v.look()
	}
	return nil
}

// begin sends the request, and reads until the answer's body has begun.
func (v *visitor) begin() error {
	v.n = 0
	if _, err := v.conn.Write(v.say); err != nil {
		return err
	}
	for head := 0; head == 0 || v.n == head; head, _ = messageEnd(v.buf[:v.n]) {
		if err := v.read(); err != nil {
			return err
		}
	}
	if !bytes.HasPrefix(v.buf, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("not the answer that was expected: %q", v.buf[:v.n])
	}
	return nil
}

// end reads the rest of the answer. In one that is sent in chunks, nothing but its end looks like
// an end.
func (v *visitor) end() error {
	head, length := messageEnd(v.buf[:v.n])
	for {
		if length >= 0 && v.n >= head+length || length < 0 && bytes.HasSuffix(v.buf[:v.n], []byte("\r\n0\r\n\r\n")) {
			return nil
		}
		if err := v.read(); err != nil {
			return err
		}
	}
}

func (v *visitor) read() error {
	n, err := v.conn.Read(v.buf[v.n:])
	v.n += n
	if err != nil {
		return fmt.Errorf("after %d bytes: %w", v.n, err)
	}
	return nil
}

// look reads the answer once more, with net/http, and compares all of its body.
func (v *visitor) look() error {
	r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(v.buf[:v.n])), nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if !bytes.Equal(body, v.want) {
		return fmt.Errorf("not the answer that was expected: %q", body)
	}
	return nil
}

// guests are visitors of one address, all at a time.
type guests []*visitor

func newGuests(n int, to door, d dialogue) (guests, error) {
	all := make(guests, n)
	for i := range all {
		v, err := newVisitor(to, d)
		if err != nil {
			all[:i].leave()
			return nil, err
		}
		all[i] = v
	}
	return all, nil
}

func (all guests) leave() {
	for _, v := range all {
		v.conn.Close()
	}
}

// begin has them ask one after the other. No answer is read to its end.
func (all guests) begin() error {
	for _, v := range all {
		if err := v.begin(); err != nil {
			return err
		}
	}
	return nil
}

// end reads all answers.
func (all guests) end() error {
	for _, v := range all {
		if err := v.end(); err != nil {
			return err
		}
		if err := v.look(); err != nil {
			return err
		}
	}
	return nil
}

// visit has all of them ask for d, and each once at least.
func (all guests) visit(d time.Duration) ([]visit, sample, error) {
	var (
		wg     sync.WaitGroup
		over   atomic.Bool
		faults = make([]error, len(all))
	)
	cpu, start := cpuTime(), time.Now()
	defer time.AfterFunc(d, func() { over.Store(true) }).Stop()
	for i, v := range all {
		v.visits = v.visits[:0]
		wg.Go(func() {
			for len(v.visits) == 0 || !over.Load() {
				faults[i] = v.ask()
				if faults[i] != nil {
					over.Store(true)
					return
				}
			}
		})
	}
	wg.Wait()
	s := sample{elapsed: time.Since(start), cpu: cpuTime() - cpu}
	if err := errors.Join(faults...); err != nil {
		return nil, sample{}, err
	}
	var visits []visit
	for _, v := range all {
		visits = append(visits, v.visits...)
	}
	s.decisions, s.admitted = len(visits), len(visits)
	return visits, s, nil
}
