package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
)

// OfFleet says of which gateways an answer is. Both lists are empty where one gateway is alone.
type OfFleet struct {
	Gateways []string `json:"gateways,omitempty"` // those that have answered, this one first
	Silent   []string `json:"silent,omitempty"`   // those that are known, and have not answered in time: what they know is missing
}

// questions is what the gateways of a fleet ask each other, by name: each answers for itself alone. An answer must be a
// value that marshals.
func (a *Admin) questions() map[string]func(q url.Values) (any, error) {
	return map[string]func(q url.Values) (any, error){
		"decisions": a.ownDecisions,
		"events":    a.ownEvents,
		"explain":   a.ownExplanation,
		"figures":   func(url.Values) (any, error) { return a.ownFigures(figures.MaxReported), nil },
		"history":   a.ownMinutes,
		"waiting":   a.ownWaiting,
	}
}

// answer answers a question of another gateway: its name, and the query of its parameters behind a question mark.
func (a *Admin) answer(question []byte) (body []byte) {
	defer func() {
		if fault := recover(); fault != nil {
			a.logPanic(fault)
			body = nil
		}
	}()
	name, query, _ := strings.Cut(string(question), "?")
	q, err := url.ParseQuery(query)
	known := a.asked[name]
	if err != nil || known == nil {
		return nil
	}
	value, err := known(q)
	if err != nil {
		return nil
	}
	return writeAnswer(value)
}

// writeAnswer returns an answer as it is sent to other gateways: figures in their binary form, anything else as JSON.
func writeAnswer(value any) []byte {
	if report, ok := value.(figures.Report); ok {
		return report.Bytes()
	}
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // all answers are types that marshal
	}
	return body
}

// maxValues is how many values an answer may have: about three times those of the largest that a gateway gives. An answer
// with very many empty values would be small on the bus, and far too large in memory.
const maxValues = 200_000

var errTooManyValues = fmt.Errorf("an answer has more than %d values", maxValues)

// readAnswer reads the answer of another gateway.
func readAnswer[T any](body []byte) (value T, err error) {
	if report, ok := any(&value).(*figures.Report); ok {
		*report, err = figures.ReadReport(body)
		return value, err
	}
	values := 0
	for _, mark := range body { // each value but the first of its list stands behind a comma
		if mark == ',' || mark == '{' || mark == '[' {
			values++
		}
	}
	if values > maxValues {
		return value, errTooManyValues
	}
	err = json.Unmarshal(body, &value)
	return value, err
}

// gathered is what the gateways of a fleet have answered to a question.
type gathered[T any] struct {
	OfFleet
	answers []T // of the Gateways, in their order
}

// gather answers a question itself, and asks all other gateways. The error is its own.
func gather[T any](ctx context.Context, a *Admin, name string, q url.Values) (all gathered[T], err error) {
	own, err := a.asked[name](q)
	if err != nil {
		return all, err
	}
	return gatherWith(ctx, a, name, q, own.(T)), nil
}

// gatherWith is gather of a gateway that has its own answer.
func gatherWith[T any](ctx context.Context, a *Admin, name string, q url.Values, own T) (all gathered[T]) {
	answers, silent := a.fleet.Ask(ctx, []byte(name+"?"+q.Encode()))
	all.answers, all.Silent = []T{own}, silent
	if len(answers) == 0 && len(silent) == 0 {
		return all
	}
	all.Gateways = []string{a.fleet.Name()}
	for _, each := range answers {
		value, err := readAnswer[T](each.Body)
		if err != nil {
			all.Silent = append(all.Silent, each.Gateway) // of a version whose answers are others
			continue
		}
		all.Gateways, all.answers = append(all.Gateways, each.Gateway), append(all.answers, value)
	}
	return all
}

// name returns the name of the gateway of an answer, or "" where there is only one.
func (all *gathered[T]) name(i int) string {
	if len(all.Gateways) == 0 {
		return ""
	}
	return all.Gateways[i]
}

// ownFigures returns the figures of this gateway: of so many names at most.
func (a *Admin) ownFigures(most int) figures.Report {
	own := figures.Report{Active: a.gateway.Active()}
	own.Lots, own.Totals = a.gateway.Figures().Largest(most)
	places := map[pair]int{}
	a.gateway.Models().EachWaiting(func(project, model string, waited time.Duration) {
		at, ok := places[pair{project, model}]
		if !ok {
			at = len(own.Waiting)
			if at == most {
				return
			}
			places[pair{project, model}] = at
			own.Waiting = append(own.Waiting, figures.Waiting{Project: project, Model: model})
		}
		own.Waiting[at].Count++
		own.Waiting[at].Longest = max(own.Waiting[at].Longest, waited)
	})
	return own
}

// otherFigures asks the other gateways for their figures.
func (a *Admin) otherFigures(ctx context.Context) (others []figures.Report, of OfFleet) {
	if a.fleet.Alone() {
		return nil, OfFleet{}
	}
	all := gatherWith(ctx, a, "figures", nil, figures.Report{})
	return all.answers[1:], all.OfFleet
}

// errNoRequest is the problem of a request that nobody knows.
func errNoRequest(id string, of OfFleet) *Problem {
	silent := ""
	if len(of.Silent) > 0 {
		silent = fmt.Sprintf("; %s did not answer", strings.Join(of.Silent, ", "))
	}
	return problemf(http.StatusNotFound, "there is no request %.80q, or it is no longer kept; GET /v1/decisions lists those that are%s", id, silent)
}
