package keys

import (
	"crypto/sha256"
	"crypto/subtle"
	"math"
	"time"
)

// digest is what is kept of a secret. A slow hash is for what people think up: nobody
// guesses one of 2^160 secrets, however fast the hash.
type digest [sha256.Size]byte

// entry is a key as Find wants it. Times are Unix seconds.
type entry struct {
	key     Key
	secret  digest
	expires int64
	before  []replaced // that may still be valid
}

// replaced is a secret in its grace.
type replaced struct {
	secret digest
	until  int64
}

// nobody is the entry of ids that are not known.
var nobody entry

func newEntry(secrets []*record, now time.Time) *entry {
	key, last := secrets[0].Key, secrets[len(secrets)-1]
	e := &entry{key: key, secret: digest(last.Hash), expires: math.MaxInt64}
	if !key.Expires.IsZero() {
		e.expires = key.Expires.Unix()
	}
	for i := len(secrets) - 1; i > 0 && !secrets[i].Grace.IsZero(); i-- { // without a grace, nothing before is valid
		if until := secrets[i].Grace; now.Before(until) {
			e.before = append(e.before, replaced{digest(secrets[i-1].Hash), until.Unix()})
		}
	}
	return e
}

// previousUntil returns until when a secret that was replaced is valid, or zero if none
// is.
func (e *entry) previousUntil(now time.Time) time.Time {
	var last int64
	for _, b := range e.before {
		last = max(last, min(b.until, e.expires))
	}
	if last <= now.Unix() {
		return time.Time{}
	}
	return time.Unix(last, 0).UTC()
}

// Find returns the key that a client has sent, if it is valid. Of what has the form of
// a key, it takes as long for one that is wrong as for one that is right.
func (r *Ring) Find(secret string) (Key, bool) {
	id, secret, ok := split(secret)
	if !ok {
		return Key{}, false
	}
	e := (*r.entries.Load())[id]
	if e == nil {
		e = &nobody
	}
	if !e.admits(sha256.Sum256([]byte(secret)), time.Now().Unix()) {
		return Key{}, false
	}
	return e.key, true
}

func (e *entry) admits(secret digest, now int64) bool {
	is := subtle.ConstantTimeCompare(secret[:], e.secret[:]) == 1
	for i := range e.before {
		was := subtle.ConstantTimeCompare(secret[:], e.before[i].secret[:]) == 1
		is = is || was && now < e.before[i].until
	}
	return is && now < e.expires
}
