package call

import (
	"net/http"
	"sync"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// meters is a pool of meters: each has nearly two kilobytes.
var meters = sync.Pool{New: func() any { return new(dialect.Meter) }}

// NewMeter returns a meter for the answer to the call. Give it back with FreeMeter.
func (c *Call) NewMeter(h http.Header) *dialect.Meter {
	m := meters.Get().(*dialect.Meter)
	m.Reset(c.Request.API, h)
	m.Expect(c.Request.Answers)
	return m
}

// FreeMeter gives back a meter that nothing uses any more.
func FreeMeter(m *dialect.Meter) { meters.Put(m) }
