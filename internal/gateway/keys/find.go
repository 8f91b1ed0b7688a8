package keys

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"math"
	"time"
)

// digest is the stored hash of a secret. Passwords that people think up need a slow hash;
// a secret is one of 2^160, which nobody guesses, however fast the hash.
type digest [sha256.Size]byte

// entry is a key made ready for Find. Times are Unix seconds.
type entry struct {
	key     Key
	secret  digest
	expires int64
	old     []oldSecret
}

// oldSecret is a secret that was replaced, and stays valid for a grace period.
type oldSecret struct {
	secret digest
	until  int64
}

// noEntry stands for an unknown id. Nothing matches it.
var noEntry entry

func newEntry(secrets []*record, now time.Time) *entry {
	key, last := newest(secrets), secrets[len(secrets)-1]
	e := &entry{key: key, secret: digest(last.Hash), expires: math.MaxInt64}
	if !key.Expires.IsZero() {
		e.expires = key.Expires.Unix()
	}
	for i := len(secrets) - 1; i > 0; i-- {
		if bytes.Equal(secrets[i].Hash, secrets[i-1].Hash) {
			continue // it has changed the key's limit or models
		}
		if secrets[i].Grace.IsZero() {
			break // a secret without a grace period ends all before it
		}
		if until := secrets[i].Grace; now.Before(until) {
			e.old = append(e.old, oldSecret{digest(secrets[i-1].Hash), until.Unix()})
		}
	}
	return e
}

// previousUntil returns when the last replaced secret stops being valid, or the zero time
// if none is valid any more.
func (e *entry) previousUntil(now time.Time) time.Time {
	var last int64
	for _, secret := range e.old {
		last = max(last, min(secret.until, e.expires))
	}
	if last <= now.Unix() {
		return time.Time{}
	}
	return time.Unix(last, 0).UTC()
}

// Find returns the description of a key that a client has sent, if the key is valid. To refuse a
// text in the form of a key takes as long as to accept it.
func (r *Ring) Find(text string) (Key, bool) {
	key, _, ok := r.Use(text)
	return key, ok
}

// Sent is a key that a client has sent, and that was valid then.
type Sent struct {
	text    string
	entries *map[string]*entry // of the ring, when the key was found
	until   int64              // when the key ends, if nobody changes it before, in Unix seconds
}

// Use is Find for a caller that asks later whether the key is still valid, or waits for its end.
func (r *Ring) Use(text string) (Key, Sent, bool) {
	e, sent := r.find(text)
	if time.Now().Unix() >= sent.until {
		return Key{}, Sent{}, false
	}
	return e.key, sent, true
}

// Ended reports whether a key is not valid any more: it was revoked, it has expired, or its secret was replaced.
// It hashes the secret only if keys have changed since the key was found.
func (r *Ring) Ended(s Sent) bool { return time.Now().Unix() >= r.end(s) }

// End returns when a key ends, if nobody changes it before: because it expires, or because its secret was replaced.
// The zero time is never.
func (r *Ring) End(s Sent) time.Time {
	until := r.end(s)
	if until == math.MaxInt64 {
		return time.Time{}
	}
	return time.Unix(until, 0)
}

func (r *Ring) end(s Sent) (until int64) {
	if r.entries.Load() != s.entries {
		_, s = r.find(s.text)
	}
	return s.until
}

// find returns the entry of a key that a client has sent, and until when the key is valid. A key that was never valid
// has ended at 0.
func (r *Ring) find(text string) (*entry, Sent) {
	sent := Sent{text: text, entries: r.entries.Load()}
	id, secret, ok := split(text)
	if !ok {
		return &noEntry, sent
	}
	e := (*sent.entries)[id]
	if e == nil {
		e = &noEntry
	}
	sent.until = e.validUntil(sha256.Sum256([]byte(secret)))
	return e, sent
}

// validUntil returns until when the key is valid with a secret of this digest, or 0 if it has no such secret.
func (e *entry) validUntil(secret digest) (until int64) {
	if subtle.ConstantTimeCompare(secret[:], e.secret[:]) == 1 {
		until = e.expires
	}
	for i := range e.old {
		if subtle.ConstantTimeCompare(secret[:], e.old[i].secret[:]) == 1 {
			until = max(until, min(e.old[i].until, e.expires))
		}
	}
	return until
}
