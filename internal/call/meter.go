package call

import (
	"net/http"
	"sync"

	"dappco.re/go/core/go-ratelimit/llm"
)

// meters is a pool of meters: each has nearly two kilobytes.
var meters = sync.Pool{New: func() any { return new(llm.Meter) }}

// NewMeter returns a meter for the answer to the call. Give it back with FreeMeter.
func (c *Call) NewMeter(h http.Header) *llm.Meter {
	m := meters.Get().(*llm.Meter)
	m.Reset(c.Request.API, h)
	m.Expect(c.Request.Answers)
	return m
}

// FreeMeter gives back a meter that nothing uses any more.
func FreeMeter(m *llm.Meter) { meters.Put(m) }
