package store

import "fmt"

// Event tells of a store on a server: that it was lost, and that it is back. Events are
// for metrics and logs: each Lost is followed by a Back of the same Group, unless the
// store is closed before.
type Event struct {
	Kind EventKind

	// Mode is what the store does while the server is lost.
	Mode LossMode

	// Group is the part of a cluster that was lost or is back: each of 64 is of
	// 256 hash slots. It is 0 without a cluster.
	Group int

	// Nodes is by how many nodes the limits are shared, in the mode "share": 0 before
	// this node has heard it.
	Nodes int

	// Err is why the server was lost.
	Err error

	// Allowed and Denied are how many takes were decided without the server, since
	// the last event of that kind.
	Allowed, Denied int64

	// Keys is how many keys were reconciled, and Charged how much in all.
	Keys    int
	Charged int64

	// Missed is how many events before this one were dropped, because
	// the observer had not returned from earlier ones.
	Missed int
}

// EventKind is what happened to a store.
type EventKind string

// The kinds of events.
const (
	Lost       EventKind = "lost"       // the server, or a part of a cluster, cannot be asked
	Decided    EventKind = "decided"    // takes were decided without the server; about once a second
	Back       EventKind = "back"       // the server can be asked again
	Reconciled EventKind = "reconciled" // the server was charged what has passed without it
)

// LossMode is what a store does while its server is lost: "deny", "allow" or "share".
// Package redisstore says what each of them means.
type LossMode string

// Validate returns what is wrong with the mode and what is allowed, or nil. None is
// "deny".
func (m LossMode) Validate() error {
	switch m {
	case "", "deny", "allow", "share":
		return nil
	}
	return fmt.Errorf("ratelimit: %q when the store is lost: it must be deny, allow or share", string(m))
}
