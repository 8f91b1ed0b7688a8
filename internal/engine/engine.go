// Package engine decides on calls. A call is charged to a set of scopes, all or
// nothing: what it is expected to use is taken of every limit of every scope at once,
// and corrected when the call has ended.
//
// A scope is whatever has limits. The package knows neither models nor projects: a
// model is a scope, a project is one, and so is whatever a door makes one of. Package
// store counts; a call that is denied may wait for its turn in the line of the scope
// that denies it.
package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/unreported"
	"dappco.re/go/core/go-ratelimit/store"
)

// Engine decides on the calls of all scopes whose counters are in one store. All of
// its methods may be called at a time.
type Engine struct {
	store    store.Store
	books    books.Keeper        // the store's; nil: it keeps none
	deposits accounts.Depository // the same
	later    accounts.Later      // the same; nil: every settlement is awaited
	renewer  accounts.Renewer    // the same; nil: slots are renewed in two steps
	lease    time.Duration       // how long the store counts a slot
	private  bool                // no other process counts in the store
	remote   bool                // other machines may use the store
	owned    bool                // Close closes the store
	clock    func() int64        // Unix nanoseconds, never going back
	observer event.Observer
	errors   unreported.Error
	closed   atomic.Bool
	owed     owed
	hall     *fair.Hall
	queues   sync.Map // of the batches of models that limit them: a *Scope for the name of a model

	dedicated fair.Dedicated // flows that keep their MinShare in every shared scope
	undivided bool           // limits are not divided among flows: for tests

	joining sync.Once             // of the fleet
	fleet   atomic.Pointer[fleet] // of the processes that share the store; nil: this is not known to be one of them

	thresholds atomic.Pointer[thresholds] // of budgets; nil: observers get no events of any
	notifier   notifier

	waiting atomic.Int32 // calls that wait
	mu      sync.Mutex
	waits   map[string]map[string]map[*wait]bool // the calls that wait, by the key of a scope and by their flow
}

// Config is how an [Engine] is made.
type Config struct {
	Store    store.Store
	Owned    bool         // the engine closes the store
	Clock    func() int64 // Unix nanoseconds, never going back; a store in memory has its own, which is used instead
	Observer event.Observer
	OnError  func(error) // gets the errors that a call could not return; may be nil
}

// New returns an engine.
func New(cfg Config) *Engine {
	e := &Engine{store: cfg.Store, remote: !isLocal(cfg.Store), owned: cfg.Owned, clock: cfg.Clock, observer: cfg.Observer, hall: fair.NewHall(), waits: map[string]map[string]map[*wait]bool{}}
	e.books = hidden.Of[books.Keeper](cfg.Store)
	e.deposits = hidden.Of[accounts.Depository](cfg.Store)
	e.later = hidden.Of[accounts.Later](cfg.Store)
	e.renewer = hidden.Of[accounts.Renewer](cfg.Store)
	if memory, ok := cfg.Store.(*store.Memory); ok {
		timed := hidden.Of[interface{ Now() int64 }](memory)
		e.private, e.clock = true, timed.Now
	}
	if e.lease = Lease; !e.private && e.renewer != nil {
		e.lease = sharedLease
	}
	e.errors.OnError = cfg.OnError
	return e
}

// isLocal reports whether all who use a store are on this machine, as far as is known.
func isLocal(s store.Store) bool {
	local, ok := s.(interface{ Local() bool })
	return ok && local.Local()
}

// Joined is the store of an engine that another door is to join: project.NewWithConfig finds the engine in it.
type Joined struct {
	store.Store
	Engine *Engine
}

// Store returns where the engine counts.
func (e *Engine) Store() store.Store { return e.store }

// Now returns the engine's time, in Unix nanoseconds.
func (e *Engine) Now() int64 { return e.clock() }

// Observer returns the observer, or nil.
func (e *Engine) Observer() event.Observer { return e.observer }

// Miss notes an error that its call cannot return. nil is none.
func (e *Engine) Miss(err error) { e.errors.Keep(err) }

// Missed returns err, joined with the first error since the last call of Missed that
// its call could not return.
func (e *Engine) Missed(err error) error { return errors.Join(err, e.errors.Take()) }

// Quiet reports whether no call waits for a scope of its own.
func (e *Engine) Quiet() bool { return e.hall.Idle() }

// Close makes the corrections that are still to be made, and fails all calls from
// then on, also those that wait.
func (e *Engine) Close() error {
	if e.later != nil {
		e.later.AwaitSettled() // corrections that have failed are owed
	}
	err := e.catchUp(context.Background())
	e.notifyRest()
	e.closed.Store(true)
	if f := e.fleet.Load(); f != nil {
		f.leave()
	}
	if e.owned {
		err = errors.Join(err, e.store.Close())
	}
	e.wakeAll()
	return e.Missed(err)
}
