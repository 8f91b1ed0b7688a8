package redisstore

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"strings"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/store"
)

var _ books.Keeper = internals{}

// bookkeeper keeps the books in Redis: see lua/books.lua.
type bookkeeper struct {
	*remote
	shelves  int // the number of parts of the keyspace that have books
	maxLines int // the most separate lines of a page
	outbox   outbox
	last     atomic.Pointer[pageKeys] // that was settled on
}

// clusterShelves is the number of parts that have books in a cluster, so that several servers share
// the work.
const clusterShelves = 16

func newBookkeeper(r *remote) *bookkeeper {
	k := &bookkeeper{remote: r, shelves: 1, maxLines: books.MaxLines}
	if r.cluster {
		k.shelves = clusterShelves
	}
	k.outbox.books, r.books = k, k
	return k
}

// bookedOnce is the part of a receipt that makes sure that a call is booked once.
type bookedOnce struct{ isBooked atomic.Bool }

func (b *bookedOnce) booked() *atomic.Bool { return &b.isBooked }

// SettleBooked implements [books.Keeper]. The entry is booked in the step that settles the take, or
// in a cluster before it. If Redis is lost, the entry waits in this process until Redis is back.
func (s internals) SettleBooked(ctx context.Context, r store.Receipt, actual []int64, e *books.Entry) error {
	return s.books.settle(ctx, s.top, r, actual, e)
}

// Book implements [books.Keeper]. Entries that Redis cannot take wait in this process.
func (s internals) Book(ctx context.Context, entries []books.Entry) error {
	return s.books.outbox.add(ctx, entries...)
}

// ReadBooks implements [books.Keeper].
func (s internals) ReadBooks(ctx context.Context, q books.Query) (*books.Summary, error) {
	s.AwaitSettled()
	return s.books.read(ctx, q)
}

// TrimBooks implements [books.Keeper].
func (s internals) TrimBooks(ctx context.Context, r books.Retention) error {
	return s.books.trim(ctx, r)
}

// settle books an entry, and then lets top settle the take of a receipt.
func (k *bookkeeper) settle(ctx context.Context, top store.Store, r store.Receipt, actual []int64, e *books.Entry) error {
	if r == nil {
		return k.outbox.add(ctx, *e)
	}
	once, ok := r.(interface{ booked() *atomic.Bool })
	if !ok {
		return store.ErrReceipt
	}
	if !once.booked().CompareAndSwap(false, true) {
		return top.Settle(ctx, r, actual)
	}
	own, together := r.(*receipt)
	var failed error
	if together = together && !k.cluster && own.corrects(actual); together {
		clean := e.Clean()
		failed = k.settleBooked(ctx, own, actual, &clean)
		if _, unknown := errors.AsType[unanswered](failed); failed == nil || unknown || own.isSettled() {
			return failed
		}
	}
	if err := k.outbox.add(ctx, *e); err != nil {
		once.booked().Store(false)
		return err
	}
	if together {
		return failed
	}
	return top.Settle(ctx, r, actual)
}

// corrects reports whether the amounts correct anything of the take.
func (r *receipt) corrects(actual []int64) bool {
	for i, t := range r.takes {
		if i < len(actual) && actual[i] >= 0 && actual[i] != t.N {
			return true
		}
	}
	return false
}

// bookings returns the op that books the entries of settlements in the step that makes these, if there are any. Entries
// that could not be booked wait in the outbox.
func (k *bookkeeper) bookings(tasks []*task) []*op {
	var tally books.Tally
	var entries []books.Entry
	for _, t := range tasks {
		if t.entry != nil {
			tally.Add(t.entry, k.maxLines)
		}
	}
	for owner, amounts := range tally.Lines() {
		entries = append(entries, books.Entry{Owner: owner, Amounts: *amounts})
	}
	if len(entries) == 0 {
		return nil
	}
	keys := k.keysOf(page{at: books.HourOf(k.link.now())})
	o := &op{keys: keys[:2:2], body: k.bookBody(entries)}
	o.late = func(r result) {
		if r.err != nil {
			k.outbox.keep(entries)
		}
	}
	return []*op{o}
}

// bookBody returns the request to book entries.
func (k *bookkeeper) bookBody(entries []books.Entry) []byte {
	w := writer{stepBook}
	w.float(int64(k.maxLines))
	for i := range entries {
		w = appendLine(w, &entries[i])
	}
	return w
}

// keysOf returns the names in Redis of a page and of the set of all pages. It remembers the last ones.
func (k *bookkeeper) keysOf(p page) []string {
	if last := k.last.Load(); last != nil && last.page == p {
		return last.keys
	}
	next := &pageKeys{p, []string{k.name(p), k.index(p.shelf)}}
	k.last.Store(next)
	return next.keys
}

// pageKeys are the names in Redis of a page and of the set of all pages.
type pageKeys struct {
	page
	keys []string
}

// close sends what waits, if Redis answers.
func (k *bookkeeper) close() { k.outbox.close() }

// shelfOf returns the part of the keyspace that has the books of a project.
func (k *bookkeeper) shelfOf(project string) int {
	if k.shelves == 1 {
		return 0
	}
	h := fnv.New32a()
	h.Write([]byte(project))
	return int(h.Sum32() % uint32(k.shelves))
}

// page is an hour or a day of the books, in one part of the keyspace.
type page struct {
	shelf int
	day   bool
	at    int64
}

// index is the name in Redis of the set of all pages of a part.
func (k *bookkeeper) index(shelf int) string {
	return k.namespace + ":{" + strconv.Itoa(shelf) + "}:books"
}

// name returns the name of a page in Redis.
func (k *bookkeeper) name(p page) string {
	unit := ":hour:"
	if p.day {
		unit = ":day:"
	}
	return k.index(p.shelf) + unit + strconv.FormatInt(p.at, 10)
}

// pageOf returns the page of a part that has a name in Redis.
func (k *bookkeeper) pageOf(shelf int, name string) (p page, ok bool) {
	rest, ok := strings.CutPrefix(name, k.index(shelf)+":")
	unit, at, found := strings.Cut(rest, ":")
	p = page{shelf: shelf, day: unit == "day"}
	p.at, _ = strconv.ParseInt(at, 10, 64)
	return p, ok && found
}

// The script knows how many units a short line has.
var _ = [1]struct{}{}[books.Beside-10]

// fieldOf returns the field of a line. Its names have no NUL.
func fieldOf(o books.Owner) string { return o.Project + "\x00" + o.Model + "\x00" + o.Key }

func ownerOf(field string) (o books.Owner) {
	o.Project, field, _ = strings.Cut(field, "\x00")
	o.Model, o.Key, _ = strings.Cut(field, "\x00")
	return o
}

// newBookOp begins an op on pages of one part.
func (k *bookkeeper) newBookOp(step byte, pages ...page) *op {
	o := &op{part: pages[0].shelf}
	for _, p := range pages {
		o.keys = append(o.keys, k.name(p))
	}
	o.keys = append(o.keys, k.index(o.part))
	w := writer{step}
	w.float(int64(k.maxLines))
	o.body = w
	return o
}
