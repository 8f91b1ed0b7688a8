package store

import "fmt"

// Event reports that a store has lost its server, or reaches it again. Events are for
// metrics and logs. Each Lost is followed by a Back of the same Group, unless the store is
// closed before.
type Event struct {
	Kind EventKind

	// Mode is what the store does while the server is lost.
	Mode LossMode

	// Group is the part of a cluster that was lost or is back. A cluster has 64 groups
	// of 256 hash slots each. Group is 0 without a cluster.
	Group int

	// Nodes is the number of nodes that share the limits in the mode "share", or 0 if
	// this node does not know it yet.
	Nodes int

	// Err is the error by which the server was lost, or says which server keeps nothing.
	Err error

	// Allowed and Denied count the takes that were decided without the server since the
	// last event of this kind.
	Allowed, Denied int64

	// Keys is the number of keys that were reconciled, and Charged the sum of what the
	// server was charged for them.
	Keys    int
	Charged int64

	// Missed is the number of events that were dropped just before this one, because the
	// observer had not returned from earlier ones.
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
	Unsaved    EventKind = "unsaved"    // a server keeps nothing when it is restarted; once, when the store is opened
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
