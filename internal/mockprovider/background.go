package mockprovider

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// A laterFormat has answers that clients fetch later.
type laterFormat interface {
	format
	standing(a *answer, status string) object // returns the answer before it has ended
}

// A billedLater is billed for its units when it ends.
type billedLater interface {
	cancelled(a *answer, status string) // lowers them to what it has used that was cancelled in a status
}

// background has the responses of calls that set background, by their ids. A response is queued when the call comes,
// in progress when a client first asks for it, and has ended when a client asks again. A client that streams it waits
// until it ends.
type background struct {
	mu   sync.Mutex
	byID map[string]*later
}

// later is a response that ends later.
type later struct {
	*answer
	format laterFormat
	status string // "queued", "in_progress", "cancelled", or empty once the answer is there
}

// isBackground reports whether a call is answered in the background.
func (c *Call) isBackground() bool {
	return c.API == dialect.FineTuning || (c.API == dialect.Responses || c.API == dialect.Interactions) && c.fields.flag("background")
}

// queue keeps an answer for later, and says so.
func (e *exchange) queue(a *answer) {
	l := &later{a, e.format.(laterFormat), "queued"}
	e.keepLater(l)
	e.json(http.StatusOK, encode(l.object()))
}

func (e *exchange) keepLater(l *later) {
	b := &e.server.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byID == nil {
		b.byID = map[string]*later{}
	}
	b.byID[l.object()["id"].(string)] = l
}

// object returns the response as it stands.
func (l *later) object() object {
	if l.status == "" {
		return l.format.whole(l.answer)
	}
	return l.format.standing(l.answer, l.status)
}

// complete ends a response that was not cancelled.
func (e *exchange) complete(l *later) {
	if l.status == "queued" || l.status == "in_progress" {
		l.status = ""
		e.server.ledger.add(l.Model, Totals{Output: l.usage.output, Reasoning: l.usage.reasoning, Units: l.laterUnits()})
	}
}

// laterUnits returns the units that are billed when the response ends.
func (l *later) laterUnits() (u llm.Units) {
	if _, ok := l.format.(billedLater); ok {
		return l.units
	}
	return u
}

// servesBackground answers a request for a response that was kept, and reports whether it has.
func (e *exchange) servesBackground() bool {
	names := strings.FieldsFunc(e.r.URL.Path, func(c rune) bool { return c == '/' })
	for i, name := range names {
		rest := names[i+1:]
		cancels := e.r.Method == http.MethodPost && len(rest) == 2 && strings.EqualFold(rest[1], "cancel")
		if api, _ := dialect.FetchedAt(name + "/id"); api == "" || !cancels && (e.r.Method != http.MethodGet || len(rest) != 1) {
			continue
		}
		b := &e.server.background
		b.mu.Lock()
		defer b.mu.Unlock()
		switch l := b.byID[rest[0]]; {
		case l == nil:
			e.fail(*missing(rest[0]), limitStates{})
		case cancels:
			if l.status != "" && l.status != "cancelled" {
				if f, ok := l.format.(billedLater); ok {
					f.cancelled(l.answer, l.status)
				}
				l.status = "cancelled"
				e.server.ledger.add(l.Model, Totals{Units: l.laterUnits()})
			}
			e.json(http.StatusOK, encode(l.object()))
		default:
			e.sendLater(l)
		}
		return true
	}
	return false
}

// sendLater sends a response as it stands, or as a stream.
func (e *exchange) sendLater(l *later) {
	query := e.r.URL.Query()
	e.call, e.format = *l.Call, l.format
	if query.Get("stream") == "true" {
		e.complete(l)
		e.streamLater(l.answer, query.Get("starting_after"))
		return
	}
	switch l.status {
	case "queued":
		l.status = "in_progress"
	case "in_progress":
		e.complete(l)
	}
	e.json(http.StatusOK, encode(l.object()))
}

// streamLater sends the events of a response after one of them, by its number.
func (e *exchange) streamLater(a *answer, after string) {
	s := &streaming{exchange: e, framing: e.format.framing(a.Call), flusher: http.NewResponseController(e.w)}
	last, err := strconv.Atoi(after)
	for event := range e.format.events(a) {
		if n, _ := event.data["sequence_number"].(int); err == nil && n <= last {
			continue
		}
		event.output, event.reasoning = 0, 0 // complete has counted them
		if !s.send(event) {
			return
		}
	}
}
