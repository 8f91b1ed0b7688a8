package fleet

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/bus"
)

// The kinds of messages.
const (
	kindHello  = "hello"  // a gateway is there
	kindBye    = "bye"    // a gateway leaves
	kindAsk    = "ask"    // a question to all others
	kindAnswer = "answer" // a part of the answer to a question
	kindNone   = "none"   // the gateway has no answer to a question
)

// header is the first line of a message. Its body follows.
type header struct {
	Kind  string `json:"kind"`
	From  string `json:"from"`           // the id of the gateway
	Name  string `json:"name,omitempty"` // its name
	To    string `json:"to,omitempty"`   // of an answer: who has asked
	ID    string `json:"id,omitempty"`   // of the question
	Part  int    `json:"part,omitempty"` // of an answer: which part it is, from 0
	Parts int    `json:"parts,omitempty"`
}

const (
	// mark begins every message of a fleet, so that others who listen to the bus can skip it by its first byte.
	mark = "\x01fleet "

	partBytes   = bus.MaxMessage - 1024 // of the body; the header has room beside it
	maxParts    = 48
	maxBytes    = 4 << 20  // of an answer that is unpacked
	maxGathered = 64 << 20 // of all answers to a question
	sendTimeout = time.Second
)

// gathering is a question whose answers come in. The fleet's mu guards it.
type gathering struct {
	awaited map[string]bool     // the gateways that have not answered yet
	parts   map[string][][]byte // of answers that have not come whole
	whole   map[string][]byte
	bytes   int           // of the parts and the whole answers that have come
	done    chan struct{} // closed when nobody is awaited
}

// send sends a message to all others. What cannot be sent is lost.
func (f *Fleet) send(h header, body []byte) {
	h.From = f.node
	line, err := json.Marshal(h)
	if err != nil {
		panic(err) // a header is texts and numbers, which marshal
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	message := append(append([]byte(mark), line...), '\n')
	f.bus.Publish(ctx, append(message, body...))
}

// receive takes a message of another gateway.
func (f *Fleet) receive(message []byte) {
	rest, ok := bytes.CutPrefix(message, []byte(mark))
	if !ok {
		return
	}
	line, body, _ := bytes.Cut(rest, []byte{'\n'})
	var h header
	if json.Unmarshal(line, &h) != nil || h.From == "" || h.From == f.node || h.To != "" && h.To != f.node {
		return
	}
	known := f.see(&h)
	switch h.Kind {
	case kindHello:
		if !known { // it has just come, and does not know this gateway either
			f.later(func() { f.send(header{Kind: kindHello, Name: f.name}, nil) })
		}
	case kindAsk:
		f.later(func() { f.reply(&h, body) })
	case kindAnswer, kindNone:
		f.take(&h, body)
	}
}

// see notes that a gateway is there, or leaves, and reports whether it was known.
func (f *Fleet) see(h *header) (known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.Kind == kindBye {
		delete(f.members, h.From)
		for _, g := range f.asking {
			g.answered(h.From)
		}
		return true
	}
	m := f.members[h.From]
	if m == nil {
		f.forget()
		if len(f.members) >= maxMembers || h.Name == "" {
			return true
		}
		m = &member{name: h.Name}
		f.members[h.From] = m
	} else {
		known = true
	}
	m.seen, m.silent = time.Now(), false
	return known
}

// reply answers a question of another gateway.
func (f *Fleet) reply(h *header, question []byte) {
	to := header{Kind: kindNone, Name: f.name, To: h.From, ID: h.ID}
	body := pack(f.answer(question))
	if parts := (len(body) + partBytes - 1) / partBytes; parts > 0 && parts <= maxParts {
		to.Kind, to.Parts = kindAnswer, parts
	} else {
		body = nil
	}
	for {
		n := min(len(body), partBytes)
		f.send(to, body[:n])
		to.Part++
		body = body[n:]
		if len(body) == 0 {
			return
		}
	}
}

// take takes a part of an answer.
func (f *Fleet) take(h *header, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.asking[h.ID]
	switch {
	case g == nil:
		return
	case h.Kind == kindNone:
		g.whole[h.From] = nil
		g.answered(h.From)
		return
	case h.Parts < 1 || h.Parts > maxParts || h.Part < 0 || h.Part >= h.Parts:
		return
	}
	if f.members[h.From] == nil || g.bytes+len(body) > maxGathered {
		return
	}
	g.bytes += len(body)
	parts := g.parts[h.From]
	if len(parts) != h.Parts {
		parts = make([][]byte, h.Parts)
		g.parts[h.From] = parts
	}
	parts[h.Part] = bytes.Clone(body)
	for _, part := range parts {
		if part == nil {
			return
		}
	}
	delete(g.parts, h.From)
	if whole, err := unpack(bytes.Join(parts, nil)); err == nil && g.bytes+len(whole) <= maxGathered {
		g.whole[h.From] = whole
		g.bytes += len(whole)
	}
	g.answered(h.From)
}

// answered notes that a gateway is not awaited any more.
func (g *gathering) answered(node string) {
	if g.awaited[node] {
		delete(g.awaited, node)
		if len(g.awaited) == 0 {
			close(g.done)
		}
	}
}

// pack returns bytes compressed, or none for none.
func pack(body []byte) []byte {
	if body == nil {
		return nil
	}
	var to bytes.Buffer
	w, _ := flate.NewWriter(&to, flate.BestSpeed) // the level is a valid one
	w.Write(body)                                 // a buffer takes everything
	w.Close()
	return to.Bytes()
}

var errTooLarge = errors.New("an answer is too large")

// unpack returns the bytes that pack has compressed, if they are not too many.
func unpack(body []byte) ([]byte, error) {
	whole, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(body)), maxBytes+1))
	if len(whole) > maxBytes {
		return nil, errTooLarge
	}
	return whole, err
}
