package redisstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/store"
)

// outbox sends entries to Redis. Entries that come while others are under way are added up, and are
// sent together. Entries that Redis has not got stay, and are sent again.
type outbox struct {
	books *bookkeeper

	mu      sync.Mutex
	next    *bundle // the entries that are not sent yet, or nil
	sending bool    // a goroutine sends bundles
	retry   *time.Timer
	closed  bool
	running sync.WaitGroup
}

// bundle is entries that are sent together.
type bundle struct {
	tally books.Tally
	done  chan struct{} // closed once Redis has the entries, or they have to wait for it
}

// add adds entries, and waits until Redis has them. If Redis is lost, it does not wait.
func (b *outbox) add(ctx context.Context, entries ...books.Entry) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ratelimit: not asked: %w", err)
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return store.ErrClosed
	}
	waiting := b.bundle()
	for i := range entries {
		clean := entries[i].Clean()
		waiting.tally.Add(&clean, b.books.maxLines)
	}
	b.start()
	done := waiting.done
	b.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done(): // the entries are sent all the same
	}
	return nil
}

// bundle returns the bundle that is sent next. The caller has locked the outbox.
func (b *outbox) bundle() *bundle {
	if b.next == nil {
		b.next = &bundle{done: make(chan struct{})}
	}
	return b.next
}

// start sends bundles, unless somebody does. The caller has locked the outbox.
func (b *outbox) start() {
	if b.sending {
		return
	}
	b.sending = true
	b.running.Go(b.run)
}

// run sends bundles until there is none.
func (b *outbox) run() {
	for {
		b.mu.Lock()
		sent := b.next
		b.next = nil
		b.sending = sent != nil
		b.mu.Unlock()
		if sent == nil {
			return
		}
		lost := b.send(sent)
		close(sent.done)
		if lost {
			b.pause()
			return
		}
	}
}

// linesAtOnce is how many lines one op has at most.
const linesAtOnce = 256

// send sends a bundle, and reports whether entries are left because Redis is lost.
func (b *outbox) send(sent *bundle) (lost bool) {
	at, byShelf := books.HourOf(b.books.link.now()), map[int][]books.Entry{}
	flush := func(shelf int) {
		if !b.sendLines(page{shelf: shelf, at: at}, byShelf[shelf]) {
			lost = true
		}
		delete(byShelf, shelf)
	}
	for owner, amounts := range sent.tally.Lines() {
		shelf := b.books.shelfOf(owner.Project)
		byShelf[shelf] = append(byShelf[shelf], books.Entry{Owner: owner, Amounts: *amounts})
		if len(byShelf[shelf]) == linesAtOnce {
			flush(shelf)
		}
	}
	for shelf := range byShelf {
		flush(shelf)
	}
	return lost
}

// sendLines sends entries of one page. If Redis has not got them, it keeps them, and reports false.
func (b *outbox) sendLines(p page, entries []books.Entry) bool {
	o := b.books.newBookOp(stepBook, p)
	for i := range entries {
		o.body = appendLine(o.body, &entries[i])
	}
	o.late = func(r result) { // the answer came after the timeout
		if r.err != nil && r.notRun {
			b.keep(entries)
		}
	}
	err := b.books.link.do(context.Background(), o)
	if err != nil && !o.unanswered {
		b.keep(entries)
	}
	return err == nil
}

// appendLine appends an entry to the request of an op.
func appendLine(body []byte, e *books.Entry) []byte {
	w := writer(body)
	w.bytes([]byte(fieldOf(e.Owner)))
	amounts := e.Amounts[:]
	if e.IsShort() {
		amounts = amounts[:books.Beside]
	}
	w = append(w, byte(2*len(amounts)))
	for _, n := range amounts {
		w.number(n)
	}
	return w
}

// keep puts entries back that Redis has not got.
func (b *outbox) keep(entries []books.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := b.bundle()
	for i := range entries {
		waiting.tally.Add(&entries[i], b.books.maxLines)
	}
	b.wakeLater()
}

// pause ends the goroutine that sends. Callers that wait for the next bundle go on, since Redis is lost.
func (b *outbox) pause() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sending = false
	if b.next != nil {
		close(b.next.done)
		b.next.done = make(chan struct{})
		b.wakeLater()
	}
}

// wakeLater sends what waits after the timeout. The caller has locked the outbox.
func (b *outbox) wakeLater() {
	if b.closed || b.retry != nil {
		return
	}
	b.retry = time.AfterFunc(b.books.timeout, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.retry = nil
		if !b.closed && b.next != nil {
			b.start()
		}
	})
}

// close sends what waits once more, and ends.
func (b *outbox) close() {
	b.mu.Lock()
	b.closed = true
	if b.retry != nil {
		b.retry.Stop()
	}
	if b.next != nil {
		b.start()
	}
	b.mu.Unlock()
	b.running.Wait()
}
