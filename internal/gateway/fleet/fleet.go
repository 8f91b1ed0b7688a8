// Package fleet asks all gateways that share a store one question, and gathers their answers until a deadline. The
// messages go over the store's bus, which loses some of them now and then, so an answer may be missing.
package fleet

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/bus"
)

const (
	// helloEvery is how often a gateway announces itself to the others.
	helloEvery = 5 * time.Second

	// forgetAfter is for how long a gateway that sends nothing any more is named as silent.
	forgetAfter = 2 * time.Minute

	// Patience is how long a question waits for answers.
	Patience = time.Second

	// maxMembers bounds the gateways that are known, and maxWork what waits to be answered here.
	maxMembers = 256
	maxWork    = 32
)

// Fleet is this gateway among those that share its store. The zero Fleet is alone. Its methods may be called
// concurrently.
type Fleet struct {
	name   string
	bus    bus.Bus // nil: this gateway is alone
	node   string  // the random id of this process
	answer func(question []byte) []byte

	work        chan func() // what is sent from here; dropped if there is too much of it
	stop        context.CancelFunc
	running     sync.WaitGroup
	unsubscribe func()

	mu      sync.Mutex
	members map[string]*member    // the other gateways, by their ids
	asking  map[string]*gathering // the questions of this gateway, by their ids
}

// member is another gateway.
type member struct {
	name   string
	seen   time.Time
	silent bool // it has left a question unanswered, and has sent nothing since
}

// Answer is what one gateway has answered.
type Answer struct {
	Gateway string // its name
	Body    []byte
}

// Join returns the fleet of the gateways that share a store, where this one has a name. answer is called with the
// questions of the others, one at a time, and must return soon; nil is no answer.
func Join(store any, name string, answer func(question []byte) []byte) (*Fleet, error) {
	carrier, ok := bus.Of(store)
	if !ok {
		return &Fleet{name: name}, nil
	}
	ctx, stop := context.WithCancel(context.Background())
	f := &Fleet{
		name: name, bus: carrier, node: rand.Text(), answer: answer, work: make(chan func(), maxWork), stop: stop,
		members: map[string]*member{}, asking: map[string]*gathering{},
	}
	var err error
	if f.unsubscribe, err = carrier.Subscribe(f.receive); err != nil {
		stop()
		return &Fleet{name: name}, err
	}
	f.running.Go(func() { f.run(ctx) })
	return f, nil
}

// Name returns the name of this gateway.
func (f *Fleet) Name() string { return f.name }

// Alone reports whether no other gateway is known.
func (f *Fleet) Alone() bool {
	if f == nil || f.bus == nil {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
	return len(f.members) == 0
}

// run announces this gateway to the others every few seconds, and sends what is to be sent.
func (f *Fleet) run(ctx context.Context) {
	tick := time.NewTicker(helloEvery)
	defer tick.Stop()
	f.send(header{Kind: kindHello, Name: f.name}, nil)
	for {
		select {
		case <-ctx.Done():
			return
		case do := <-f.work:
			do()
		case <-tick.C:
			f.send(header{Kind: kindHello, Name: f.name}, nil)
		}
	}
}

// later has something sent soon, unless too much waits already.
func (f *Fleet) later(do func()) {
	select {
	case f.work <- do:
	default:
	}
}

// Close announces to the others that this gateway leaves.
func (f *Fleet) Close() {
	if f == nil || f.bus == nil {
		return
	}
	f.stop()
	f.running.Wait()
	f.send(header{Kind: kindBye}, nil)
	f.unsubscribe()
}

// Ask asks all other gateways a question. It returns their answers in the order of their names, and the names of those
// that have not answered in time. It does not wait for a gateway that was silent before.
func (f *Fleet) Ask(ctx context.Context, question []byte) (answers []Answer, silent []string) {
	if f.Alone() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	id := rand.Text()
	g := f.begin(id)
	f.send(header{Kind: kindAsk, Name: f.name, ID: id}, question)
	select {
	case <-g.done:
	case <-ctx.Done():
	}
	return f.end(id, g)
}

// begin registers a question.
func (f *Fleet) begin(id string) *gathering {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := &gathering{parts: map[string][][]byte{}, whole: map[string][]byte{}, awaited: map[string]bool{}, done: make(chan struct{})}
	for node, m := range f.members {
		if !m.silent {
			g.awaited[node] = true
		}
	}
	if len(g.awaited) == 0 {
		close(g.done)
	}
	f.asking[id] = g
	return g
}

// end returns what has come of a question. Gateways that have left it unanswered are silent from now on.
func (f *Fleet) end(id string, g *gathering) (answers []Answer, silent []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.asking, id)
	for node, m := range f.members {
		if body := g.whole[node]; body != nil {
			answers = append(answers, Answer{m.name, body})
		}
		m.silent = m.silent || g.awaited[node]
		if m.silent {
			silent = append(silent, m.name)
		}
	}
	slices.SortFunc(answers, func(a, b Answer) int { return strings.Compare(a.Gateway, b.Gateway) })
	slices.Sort(silent)
	return answers, silent
}

// forget removes the gateways that have sent nothing for long. The caller holds mu.
func (f *Fleet) forget() {
	maps.DeleteFunc(f.members, func(_ string, m *member) bool { return time.Since(m.seen) > forgetAfter })
}

// Others returns the names of the other gateways that are known, in their order.
func (f *Fleet) Others() (names []string) {
	if f.Alone() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		names = append(names, m.name)
	}
	slices.Sort(names)
	return names
}
