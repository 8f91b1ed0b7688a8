package dialect

import (
	"bytes"
	"net/http"
)

// tier is the service tier of a call, as far as prices depend on it.
type tier uint8

const (
	tierUntold tier = iota
	tierUsual
	tierBatch
	tierFlex
	tierPriority
	tierFast // a speed, which has prices like a tier
)

var tierNames = [...]string{tierBatch: "batch", tierFlex: "flex", tierPriority: "priority", tierFast: "fast"}

// String returns the name of a tier with prices of its own, and nothing for the usual one.
func (t tier) String() string { return tierNames[t] }

// told returns the name of the tier that a response names, and nothing if it names none.
func (t tier) told() string {
	if t == tierUsual {
		return "standard"
	}
	return t.String()
}

// tierPrefixes begin the names of some providers' tiers.
var tierPrefixes [][]byte

// tierOf returns the tier with a name, in upper or lower case. Every name that is not known is one
// of the usual tier, which providers call default, standard, scale or on_demand.
func tierOf(name []byte) tier {
	if len(name) == 0 {
		return tierUntold
	}
	for _, prefix := range tierPrefixes {
		name = bytes.TrimPrefix(name, prefix)
	}
	for t := tierBatch; t <= tierFast; t++ {
		if len(name) == len(tierNames[t]) && bytes.EqualFold(name, []byte(tierNames[t])) {
			return t
		}
	}
	return tierUsual
}

// serviceTier reads the field of a service tier: a word, or an object whose type is that word. Any other value but null
// is wrong.
func (r *requestReader) serviceTier(f *field) (named tier) {
	if !f.isOf(r.protocol) {
		r.skip()
		return tierUntold
	}
	if r.next() != '{' {
		return r.tierName(f)
	}
	r.at++
	for first := true; r.item(first, '}'); first = false {
		if string(r.key()) == "type" {
			named = r.tierName(f) // of two with one name the last counts
		} else {
			r.skip()
		}
	}
	return named
}

// tierName reads the name of a service tier, or of a speed.
func (r *requestReader) tierName(f *field) tier {
	if r.next() == '"' {
		name := r.str()
		if name.spare > 0 {
			name.raw = []byte(name.String())
		}
		return tierOf(name.raw)
	}
	if word := r.word(); string(word) != "null" {
		r.misread(f, f.name, "must be a string")
	}
	return tierUntold
}

// tierHeaders are the headers in which requests ask for a service tier, and responses name one.
var tierHeaders []string

// ReadTier reads the service tier that the headers of a request ask for, as those of Bedrock's Invoke do. The dearest
// counts, if the body names another.
func (r *Request) ReadTier(h http.Header) {
	for _, header := range tierHeaders {
		for _, name := range h[header] {
			if asked := tierOf(bytes.TrimSpace([]byte(name))); asked > tierOf([]byte(r.Tier)) {
				r.Tier = asked.String()
			}
		}
	}
}
