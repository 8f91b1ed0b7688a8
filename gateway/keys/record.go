package keys

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/message"
)

// record is a secret of a key as it is stored, under the key's id, and from the second
// one on with its number: "key/abcdefgh23", "key/abcdefgh23/1". It is never changed,
// only taken back, and nobody but the first to write under a name does. So those who
// change a key at the same time, wherever they are, do so one after another; and
// whatever else they do, without the first record there is no key.
type record struct {
	Key
	Turn  int       `json:"turn,omitempty"` // how many secrets it had before
	Hash  []byte    `json:"sha256"`         // of the secret
	Grace time.Time `json:"grace,omitzero"` // until then, the secret before is valid
}

const kind = "key/" // of settings

func (r *record) setting() string {
	if r.Turn == 0 {
		return r.ID
	}
	return r.ID + "/" + strconv.Itoa(r.Turn)
}

func idOf(setting string) string {
	id, _, _ := strings.Cut(setting, "/")
	return id
}

// parse returns the records of keys by the keys' ids, in their order. A key of which
// not all is there and understood is left out, and missed: a secret that was replaced
// must not become valid again.
func parse(all map[string]string, miss func(error)) map[string][]*record {
	found, broken := map[string][]*record{}, map[string]bool{}
	for setting, text := range all {
		name := strings.TrimPrefix(setting, kind)
		r, err := parseRecord(name, text)
		switch {
		case err != nil:
			broken[idOf(name)] = true
			miss(fmt.Errorf("ratelimit: the store's setting %.80q is not used: %s", setting, message.Plain(err)))
		case r == nil:
			broken[idOf(name)] = true
		default:
			found[r.ID] = append(found[r.ID], r)
		}
	}
	for id, records := range found {
		slices.SortFunc(records, func(a, b *record) int { return cmp.Compare(a.Turn, b.Turn) })
		first, last := records[0].Turn, records[len(records)-1].Turn
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

// parseRecord returns nil for what was taken back. Its errors do not show the text.
func parseRecord(setting, text string) (*record, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var r *record
	if err := decoder.Decode(&r); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("it must be one value")
	}
	if r == nil {
		return nil, nil
	}
	return r, r.validate(setting)
}

func (r *record) validate(setting string) error {
	switch {
	case !isID(r.ID) || r.Turn < 0 || r.setting() != setting:
		return errors.New("it is of another key")
	case len(r.Hash) != len(digest{}):
		return fmt.Errorf("its hash has %d bytes: it must have %d", len(r.Hash), len(digest{}))
	}
	return r.Key.validate()
}
