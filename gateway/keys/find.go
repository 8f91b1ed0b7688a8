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
	id, secret, ok := split(text)
	if !ok {
		return Key{}, false
	}
	e := (*r.entries.Load())[id]
	if e == nil {
		e = &noEntry
	}
	if !e.accepts(sha256.Sum256([]byte(secret)), time.Now().Unix()) {
		return Key{}, false
	}
	return e.key, true
}

// accepts reports whether the key is valid at a time with a secret of this digest.
func (e *entry) accepts(secret digest, now int64) bool {
	valid := subtle.ConstantTimeCompare(secret[:], e.secret[:]) == 1
	for i := range e.old {
		matches := subtle.ConstantTimeCompare(secret[:], e.old[i].secret[:]) == 1
		valid = valid || matches && now < e.old[i].until
	}
	return valid && now < e.expires
}
