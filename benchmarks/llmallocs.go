package main

import (
	"fmt"
	"io"
	"net/http"
	"testing"
)

// meterAllocs are about what a chunk allocates: what a stream twice as long allocates more.
func meterAllocs(deltas int) []check {
	var checks []check
	long := streams(2 * deltas)
	for i, s := range streams(deltas) {
		for _, w := range ways(s)[1:] {
			each := max(w.allocs(long[i])-w.allocs(s), 0) / float64(deltas)
			checks = append(checks, check{
				figure:   "llm/meter: " + w.of(s) + ", allocations a chunk",
				required: "0",
				measured: fmt.Sprintf("%.3g", each),
				pass:     each == 0,
			})
		}
	}
	return checks
}

// allocs counts what reading a stream event by event allocates.
func (w way) allocs(s stream) float64 {
	const runs = 20
	from := source{open: func() (http.Header, io.ReadCloser, error) {
		return streamHeader, io.NopCloser(&eventReader{events: s.events}), nil
	}}
	return testing.AllocsPerRun(runs, func() { w.once(s, from) })
}

// eventReader has one event at a time.
type eventReader struct {
	rest   []byte
	events [][]byte
}

func (r *eventReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if len(r.events) == 0 {
			return 0, io.EOF
		}
		r.rest, r.events = r.events[0], r.events[1:]
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
