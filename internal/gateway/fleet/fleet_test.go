package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// wire carries messages between the nodes of a test.
type wire struct {
	mu    sync.Mutex
	nodes map[*node]func([]byte)
}

// node is one store on the wire.
type node struct {
	*wire
	cut bool // it neither sends nor receives
}

var _ bus.Bus = (*node)(nil)

func (n *node) Publish(_ context.Context, message []byte) error {
	if err := bus.Check(message); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut {
		return errors.New("cut")
	}
	for other, receive := range n.nodes {
		if other != n && !other.cut {
			receive(bytes.Clone(message))
		}
	}
	return nil
}

func (n *node) Subscribe(receive func([]byte)) (func(), error) {
	queue := make(chan []byte, 256)
	var receiving sync.WaitGroup
	receiving.Go(func() {
		for message := range queue {
			receive(message)
		}
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes[n] = func(message []byte) { queue <- message }
	return func() {
		n.mu.Lock()
		delete(n.nodes, n)
		n.mu.Unlock()
		close(queue)
		receiving.Wait()
	}, nil
}

func (n *node) setCut(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
}

// joined returns a gateway that answers with its name and the question.
func joined(t *testing.T, w *wire, name string) (*Fleet, *node) {
	t.Helper()
	n := &node{wire: w}
	f, err := Join(n, name, func(question []byte) []byte {
		if string(question) == "nothing?" {
			return nil
		}
		return []byte(name + " " + string(question))
	})
	if err != nil {
		t.Fatal(err)
	}
	return f, n
}

// shown returns answers as a line.
func shown(answers []Answer, silent []string) string {
	var words []string
	for _, a := range answers {
		words = append(words, fmt.Sprintf("%s: %s", a.Gateway, a.Body))
	}
	return strings.Join(words, ", ") + " | " + strings.Join(silent, ", ")
}

// All gateways answer, whichever is asked. One that does not answer is named after a second, and not waited for again;
// one that has left is not named.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{nodes: map[*node]func([]byte){}}
		a, _ := joined(t, w, "a")
		if !a.Alone() {
			t.Error("one gateway is not alone")
		}
		b, hung := joined(t, w, "b")
		c, _ := joined(t, w, "c")
		synctest.Wait()
		want := func(what string, by *Fleet, question, answers string, within time.Duration) {
			t.Helper()
			from := time.Now()
			got := shown(by.Ask(t.Context(), []byte(question)))
			testkit.Equal(t, what, answers, got)
			if took := time.Since(from); took > within {
				t.Errorf("%s: it took %v", what, took)
			}
			synctest.Wait()
		}
		want("a asks", a, "hm?", "b: b hm?, c: c hm? | ", 0)
		want("b asks", b, "hm?", "a: a hm?, c: c hm? | ", 0)
		want("nobody knows", a, "nothing?", " | ", 0)
		hung.setCut(true)
		want("b hangs", a, "hm?", "c: c hm? | b", Patience)
		want("b still hangs", a, "hm?", "c: c hm? | b", 0)
		hung.setCut(false)
		time.Sleep(helloEvery)
		synctest.Wait()
		want("b is back", a, "hm?", "b: b hm?, c: c hm? | ", 0)
		c.Close()
		synctest.Wait()
		want("c has left", a, "hm?", "b: b hm? | ", 0)
		hung.setCut(true)
		want("b hangs again", a, "hm?", " | b", Patience)
		time.Sleep(forgetAfter + 1)
		want("b is forgotten", a, "hm?", " | ", 0)
		hung.setCut(false)
		a.Close()
		b.Close()
	})
}

// An answer that does not fit into one message comes in parts. One that is far too large is none.
func TestLargeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{nodes: map[*node]func([]byte){}}
		a, _ := joined(t, w, "a")
		noise := func(n int) []byte {
			all, state := make([]byte, n), uint64(n)
			for i := range all {
				state = state*6364136223846793005 + 1442695040888963407
				all[i] = byte(state >> 33)
			}
			return all
		}
		b, err := Join(&node{wire: w}, "b", func(question []byte) []byte {
			n := 0
			fmt.Sscan(string(question), &n)
			return noise(n)
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, n := range []int{1, partBytes, 5 * partBytes} {
			answers, silent := a.Ask(t.Context(), fmt.Append(nil, n))
			if len(answers) != 1 || len(silent) > 0 || !bytes.Equal(answers[0].Body, noise(n)) {
				t.Errorf("%d bytes: %d answers, %v", n, len(answers), silent)
			}
		}
		if answers, silent := a.Ask(t.Context(), fmt.Append(nil, (maxParts+1)*partBytes)); len(answers) != 0 || len(silent) != 0 {
			t.Errorf("too much: %d answers, %v", len(answers), silent)
		}
		a.Close()
		b.Close()
	})
}

// A store that carries no messages makes no fleet.
func TestAlone(t *testing.T) {
	f, err := Join(struct{}{}, "a", nil)
	if err != nil || !f.Alone() || f.Name() != "a" {
		t.Errorf("%+v, %v", f, err)
	}
	if answers, silent := f.Ask(t.Context(), nil); len(answers) != 0 || len(silent) != 0 {
		t.Error(answers, silent)
	}
	f.Close()
}

// Whatever comes over the bus, nothing breaks, and nobody is known by it.
func TestStrangeMessages(t *testing.T) {
	w := &wire{nodes: map[*node]func([]byte){}}
	f, n := joined(t, w, "a")
	defer f.Close()
	f.begin("q")
	for _, message := range []string{
		"", mark, mark + "{}", mark + "null\n", mark + `{"kind":"hello","from":"x"}`, `{"node":"x"}`, mark + `{"kind":"hello","from":"` + f.node + `","name":"me"}`,
		mark + `{"kind":"answer","from":"y","id":"q","parts":-1}`, mark + `{"kind":"answer","from":"y","id":"q","parts":1000000000}`, mark + `{"kind":"answer","from":"y","id":"q","part":7,"parts":2}`,
	} {
		f.receive([]byte(message))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(f.members) != 0 || len(f.asking["q"].parts) != 0 {
		t.Errorf("%v", f.members)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte(mark + `{"kind":"hello","from":"x","name":"b"}`))
	f.Add([]byte(mark + `{"kind":"answer","from":"x","name":"b","id":"q","parts":2,"part":1}` + "\nabc"))
	f.Add([]byte(mark + `{"kind":"none","from":"x","name":"b","id":"q"}`))
	f.Add([]byte(mark + `{"kind":"bye","from":"x"}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		g := &Fleet{name: "a", node: "me", work: make(chan func(), 1), members: map[string]*member{}, asking: map[string]*gathering{}}
		g.members["x"] = &member{name: "b", seen: time.Now()}
		q := g.begin("q")
		for range 3 {
			g.receive(message)
		}
		g.end("q", q)
	})
}

// The answers to a question take a bounded room, however many gateways claim to be there, and however small what they send
// is on the bus. A gateway that is not known has no answer.
func TestHostileAnswers(t *testing.T) {
	g := &Fleet{name: "a", node: "me", work: make(chan func(), 1), members: map[string]*member{}, asking: map[string]*gathering{}}
	q := g.begin("q")
	bomb := pack(make([]byte, maxBytes))
	if len(bomb) > partBytes {
		t.Fatalf("it has %d bytes", len(bomb))
	}
	for i := range 4 * maxMembers {
		answer := bomb
		if i > maxGathered/maxBytes+1 { // unpacking takes long
			answer = pack([]byte("{}"))
		}
		g.receive(append(fmt.Appendf(nil, mark+`{"kind":"answer","from":"n%d","name":"n%d","id":"q","parts":1}`+"\n", i, i), answer...))
		g.receive(append(fmt.Appendf(nil, mark+`{"kind":"answer","from":"n%d","name":"n%d","id":"q","parts":%d}`+"\n", i, i, maxParts), bomb...))
	}
	total := 0
	for _, whole := range q.whole {
		total += len(whole)
	}
	if total == 0 || total > maxGathered || len(g.members) > maxMembers || len(q.parts) > maxMembers {
		t.Errorf("%d MB, %d members, %d answers in parts", total>>20, len(g.members), len(q.parts))
	}
	if _, err := unpack(pack(make([]byte, maxBytes+1))); err == nil {
		t.Error("an answer that is too large was unpacked")
	}
}
