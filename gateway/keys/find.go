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
	key          Key
	secret       digest
	before       digest // of the secret that this one has replaced
	expires      int64
	beforeWithin int64 // until then, before is valid too
}

// nobody is the entry of ids that are not known.
var nobody entry

func newEntry(secrets []*record) *entry {
	key, last := secrets[0].Key, secrets[len(secrets)-1]
	e := &entry{key: key, secret: digest(last.Hash), expires: math.MaxInt64}
	if !key.Expires.IsZero() {
		e.expires = key.Expires.Unix()
	}
	if len(secrets) > 1 && !last.Grace.IsZero() {
		e.before, e.beforeWithin = digest(secrets[len(secrets)-2].Hash), last.Grace.Unix()
	}
	return e
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
	was := subtle.ConstantTimeCompare(secret[:], e.before[:]) == 1
	return now < e.expires && (is || was && now < e.beforeWithin)
}
