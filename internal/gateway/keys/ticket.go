package keys

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A ticket is <id>.<expires>.<mac>: it stands for a key until it expires, and does not contain the key's
// secret. The mac is keyed with the stored hash of the secret, so every gateway that knows the key knows
// its tickets, and they end with the secret.

// Ticket returns a ticket for a key that a client has sent, if the key is valid. The ticket is valid until
// a time, or until the key ends.
func (r *Ring) Ticket(key string, until time.Time) (ticket string, ok bool) {
	if _, ok := r.Find(key); !ok {
		return "", false
	}
	id, secret, _ := split(key)
	hash := digest(sha256.Sum256([]byte(secret)))
	expires := strconv.FormatInt(until.Unix(), 10)
	return id + "." + expires + "." + hex.EncodeToString(hash.sign(id, expires)), true
}

// FindTicket returns the description of the key that a ticket stands for, if both are valid.
func (r *Ring) FindTicket(ticket string) (Key, bool) {
	id, rest, _ := strings.Cut(ticket, ".")
	expires, text, _ := strings.Cut(rest, ".")
	mac, err := hex.DecodeString(text)
	until, badTime := strconv.ParseInt(expires, 10, 64)
	e := (*r.entries.Load())[id]
	if now := time.Now().Unix(); err != nil || badTime != nil || until <= now || e == nil || !e.signed(mac, expires, now) {
		return Key{}, false
	}
	return e.key, true
}

// signed reports whether a mac belongs to a ticket for the key that is valid at a time.
func (e *entry) signed(mac []byte, expires string, now int64) bool {
	if e.expires <= now {
		return false
	}
	if hmac.Equal(mac, e.secret.sign(e.key.ID, expires)) {
		return true
	}
	return slices.ContainsFunc(e.old, func(s oldSecret) bool {
		return now < s.until && hmac.Equal(mac, s.secret.sign(e.key.ID, expires))
	})
}

// sign returns the mac of a ticket.
func (d digest) sign(id, expires string) []byte {
	mac := hmac.New(sha256.New, d[:])
	mac.Write([]byte("ratelimit ticket " + id + "." + expires))
	return mac.Sum(nil)
}
