package admin

import (
	"context"
	"crypto/rand"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
)

const (
	askEvery   = time.Second      // how often a gateway asks the others for their events, for each client that follows
	endRemote  = 15 * time.Second // after how long a remote follower ends that nobody asks for
	maxRemotes = 32               // how many remote followers a gateway has
)

// eventSilent is the kind of the event that names the gateways which do not answer.
const eventSilent = "silent"

// Silent names the gateways of the fleet whose events are missing; none if those of all come again.
type Silent struct {
	Time     time.Time `json:"time"`
	Gateways []string  `json:"gateways"`       // that do not answer
	Full     []string  `json:"full,omitempty"` // that have as many followers of other gateways as they take
}

// remotes are the followers of this gateway's events for clients of other gateways, by id. The zero value is ready to use.
type remotes struct {
	mu  sync.Mutex
	all map[string]*remote
}

type remote struct {
	*gateway.Follower
	end *time.Timer
}

// ownEvents is what has happened at one gateway since it was last asked.
type ownEvents struct {
	Events []textEvent
	Full   bool // there are too many followers
}

// ownEvents returns the events since the last question with the same id. The first one begins to follow.
func (a *Admin) ownEvents(q url.Values) (any, error) {
	id := q.Get("id")
	r := &a.remotes
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.all[id]
	if f == nil {
		want, err := wantedEvents(q)
		if err != nil {
			return nil, err
		}
		if len(r.all) == maxRemotes {
			return ownEvents{Full: true}, nil
		}
		f = &remote{Follower: a.gateway.Follow(want), end: time.AfterFunc(endRemote, func() { r.remove(id) })}
		if r.all == nil {
			r.all = map[string]*remote{}
		}
		r.all[id] = f
	}
	f.end.Reset(endRemote)
	return ownEvents{Events: a.readEvents(f.Follower, eventsEach)}, nil
}

// remove ends a follower.
func (r *remotes) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.all[id]; f != nil {
		f.Close()
		delete(r.all, id)
	}
}

// others follows the other gateways for one client.
type others struct {
	admin  *Admin
	query  url.Values
	silent []string
	full   []string
}

func newOthers(a *Admin, q url.Values) *others {
	o := &others{admin: a, query: maps.Clone(q)}
	o.query.Set("id", rand.Text())
	return o
}

// run sends the events of the other gateways, and before them those that it is given, until ctx ends.
func (o *others) run(ctx context.Context, all gathered[ownEvents], to *feed) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for ctx.Err() == nil && o.send(all, to) == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			all = o.ask(ctx)
		}
	}
}

// ask returns what has happened at the other gateways since they were last asked.
func (o *others) ask(ctx context.Context) gathered[ownEvents] {
	if o.admin.fleet.Alone() {
		return gathered[ownEvents]{}
	}
	return gatherWith(ctx, o.admin, "events", o.query, ownEvents{})
}

// send sends events, and which gateways are silent if others were before.
func (o *others) send(all gathered[ownEvents], to *feed) error {
	var full []string
	for i, of := range all.answers {
		if of.Full {
			full = append(full, all.name(i))
		}
	}
	if !slices.Equal(o.silent, all.Silent) || !slices.Equal(o.full, full) {
		o.silent, o.full = all.Silent, full
		if err := to.send(eventSilent, Silent{time.Now().UTC(), append([]string{}, all.Silent...), full}); err != nil {
			return err
		}
	}
	for _, of := range all.answers {
		if err := to.sendAll(of.Events); err != nil {
			return err
		}
	}
	return nil
}
