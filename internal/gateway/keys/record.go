package keys

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/settings"
)

// record is a secret of a key as the store has it: under the key's id, and from the second secret on with its number,
// as in "key/abcdefgh23" and "key/abcdefgh23/1". If only the limit or the models of the key have changed, the record
// has the same secret as the one before it; those of the last record count. A record never changes; revoking the key
// empties it. Only the first gateway to write a name succeeds, so gateways that change a key at the same time do so one
// after another. Without its first record there is no key.
type record struct {
	Key
	Number int       `json:"turn,omitempty"` // how many secrets the key had before
	Hash   []byte    `json:"sha256"`         // see digest
	Grace  time.Time `json:"grace,omitzero"` // when the secret that this one replaces stops being valid
}

// The beginnings of the names of settings: of keys of clients, and of tokens of the admin API.
const (
	keyPrefix   = "key/"
	tokenPrefix = "token/"
)

func (r *record) setting() string {
	if r.Number == 0 {
		return r.ID
	}
	return r.ID + "/" + strconv.Itoa(r.Number)
}

// newest returns the description of a key.
func newest(secrets []*record) Key {
	k, last := secrets[0].Key, secrets[len(secrets)-1]
	k.Limit, k.Models = last.Limit, last.Models
	return k
}

// equal reports whether two records, which may be nil, are the same.
func (r *record) equal(other *record) bool {
	one, err := json.Marshal(r)
	two, otherErr := json.Marshal(other)
	return err == nil && otherErr == nil && bytes.Equal(one, two)
}

func idOf(setting string) string {
	id, _, _ := strings.Cut(setting, "/")
	return id
}

// parse returns the records of all keys, by id and in the order of their numbers. It leaves
// out a key of which a record is missing or not valid, and keeps the error: a secret
// that was replaced must not become valid again.
func (r *Ring) parse(all map[string]string) map[string][]*record {
	miss := r.missed.Keep
	found, broken := map[string][]*record{}, map[string]bool{}
	for setting, text := range all {
		name := strings.TrimPrefix(setting, r.prefix)
		rec, err := r.parseRecord(name, text)
		switch {
		case err != nil:
			broken[idOf(name)] = true
			miss(fmt.Errorf("ratelimit: the store's setting %.80q is not used: %s", setting, message.Plain(err)))
		case rec == nil:
			broken[idOf(name)] = true
		default:
			found[rec.ID] = append(found[rec.ID], rec)
		}
	}
	for id, records := range found {
		slices.SortFunc(records, func(a, b *record) int { return cmp.Compare(a.Number, b.Number) })
		first, last := records[0].Number, records[len(records)-1].Number
		if !broken[id] && first == 0 && last == len(records)-1 {
			continue
		}
		delete(found, id)
		if first == 0 {
			miss(fmt.Errorf("ratelimit: key %q is not used: not all that the store should have of it is there and valid", id))
		}
	}
	return found
}

// parseRecord returns nil for a record that was emptied. Its errors do not show the text.
func (r *Ring) parseRecord(setting, text string) (*record, error) {
	rec, err := settings.Decode[record](text)
	if rec == nil {
		return nil, err
	}
	return rec, cmp.Or(r.checkKind(&rec.Key), rec.validate(setting))
}

// checkKind returns an error if a key is among tokens, or a token among keys.
func (r *Ring) checkKind(k *Key) error {
	switch isToken := k.Role != ""; {
	case isToken && r.prefix == keyPrefix:
		return fmt.Errorf("%w: a key has no role", ErrInvalid)
	case !isToken && r.prefix == tokenPrefix:
		return CheckRole("", "")
	}
	return nil
}

func (r *record) validate(setting string) error {
	switch {
	case !isID(r.ID) || r.Number < 0 || r.setting() != setting:
		return errors.New("it is of another key")
	case len(r.Hash) != len(digest{}):
		return fmt.Errorf("its hash has %d bytes: it must have %d", len(r.Hash), len(digest{}))
	}
	return r.Key.validate()
}
