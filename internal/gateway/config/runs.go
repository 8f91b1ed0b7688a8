package config

import (
	"encoding/json"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
	"dappco.re/go/core/go-ratelimit/project"
)

// Runs is what each run of an agent may use. The zero Runs has no limits.
type Runs project.RunLimit

const (
	minExpires = time.Minute
	maxExpires = 366 * 24 * time.Hour
)

func (r *Runs) read(at yamlValue) {
	at.Fields(append(limits(runFields, r, kind.Run),
		field("reserve", reserve(&r.Reserve)),
		field("on_overrun", onOverrun(&r.OnOverrun)),
		field("expires", strictyaml.Duration(&r.Expires, minExpires, maxExpires)),
	)...)
	for _, name := range []string{"expires", "reserve", "on_overrun"} {
		if at.Has(name) && *r == (Runs{Expires: r.Expires, Reserve: r.Reserve, OnOverrun: r.OnOverrun}) && !at.Faulty() {
			at.At(name).Fault("runs have no limit: dollars, tokens or calls must be set")
		}
	}
}

// MarshalJSON writes the duration as the file has it.
func (r Runs) MarshalJSON() ([]byte, error) {
	expires := ""
	if r.Expires > 0 {
		expires = short(r.Expires)
	}
	type limits project.RunLimit // whose Expires is a number
	return json.Marshal(struct {
		limits
		Expires string `json:"expires,omitempty"`
	}{limits(r), expires})
}
