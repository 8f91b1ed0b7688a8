package otlp

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Span is one request. Its zero value is not sampled.
type Span struct {
	Sampled bool

	trace  [16]byte
	id     [8]byte
	parent [8]byte // zero: the trace begins here

	Name       string
	Began      time.Time
	Took       time.Duration
	Failed     bool
	Attributes []Attribute
}

// Attribute is a part of a span's description. Its value is a string, an int, a float64 or a bool.
type Attribute struct {
	Name  string
	Value any
}

// Start begins a span. If the client sends the context of a trace (W3C's traceparent), the span belongs to it, and is
// sampled if the client has sampled it; otherwise a part of all traces is.
func (e *Exporter) Start(traceparent string) (s Span) {
	binary.BigEndian.PutUint64(s.id[:], rand.Uint64()|1)
	if sampled, ok := s.parse(traceparent); ok {
		s.Sampled = sampled
		return s
	}
	binary.BigEndian.PutUint64(s.trace[:8], rand.Uint64()|1)
	binary.BigEndian.PutUint64(s.trace[8:], rand.Uint64())
	s.Sampled = rand.IntN(100) < e.cfg.Sample
	return s
}

// parse reads the context of a client's trace: 00-<trace>-<parent>-<flags>.
func (s *Span) parse(text string) (sampled, ok bool) {
	parts := strings.Split(text, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || parts[0] == "00" && len(parts) > 4 || len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 {
		return false, false
	}
	var trace [16]byte
	var parent [8]byte
	flags, err := strconv.ParseUint(parts[3], 16, 8)
	if _, bad := hex.Decode(trace[:], []byte(parts[1])); bad != nil || err != nil || trace == ([16]byte{}) {
		return false, false
	}
	if _, bad := hex.Decode(parent[:], []byte(parts[2])); bad != nil || parent == ([8]byte{}) {
		return false, false
	}
	s.trace, s.parent = trace, parent
	return flags&1 == 1, true
}

// Parent returns the context of the span's trace for whoever is asked next, as traceparent has it.
func (s *Span) Parent() string {
	return "00-" + hex.EncodeToString(s.trace[:]) + "-" + hex.EncodeToString(s.id[:]) + "-01"
}

// The kind and the status of spans in OTLP.
const (
	kindServer  = 2
	statusError = 2
)

// object returns the span as OTLP has it in JSON.
func (s *Span) object() object {
	attributes := make([]object, len(s.Attributes))
	for i, a := range s.Attributes {
		attributes[i] = attribute(a.Name, a.Value)
	}
	o := object{
		"traceId": hex.EncodeToString(s.trace[:]), "spanId": hex.EncodeToString(s.id[:]), "name": s.Name, "kind": kindServer,
		"startTimeUnixNano": nanos(s.Began), "endTimeUnixNano": nanos(s.Began.Add(s.Took)), "attributes": attributes,
	}
	if s.parent != ([8]byte{}) {
		o["parentSpanId"] = hex.EncodeToString(s.parent[:])
	}
	if s.Failed {
		o["status"] = object{"code": statusError}
	}
	return o
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
