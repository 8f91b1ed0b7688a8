package httplimit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/project"
)

// told keeps what happened to requests, and whether they went on.
type told struct{ events []event.Event }

func (t *told) Observe(_ context.Context, e event.Event) { t.events = append(t.events, e) }

// Every request reaches the observers once, those of nobody too: who tries with
// Shadow wants to know how many there are.
func TestObserved(t *testing.T) {
	nobody := httptest.NewRequest(http.MethodGet, "/", nil)
	broken := Cost(func(*http.Request) (int, int, error) { return 0, 0, errors.New("no cost") })
	for _, c := range []struct {
		name    string
		request *http.Request
		options []Option
		kind    event.Kind
		project string
	}{
		{"passes", request(http.MethodGet), nil, event.Admitted, "p"},
		{"without a project", nobody, nil, event.Refused, ""},
		{"without a project, in the shadow", nobody, []Option{Shadow()}, event.Refused, ""},
		{"without a cost", request(http.MethodGet), []Option{broken}, event.Refused, "p"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := &told{}
			limiter := configured(t, project.Config{Observer: seen})
			do(Middleware(limiter, c.options...)(&fine{}), c.request)
			shadow := len(c.options) > 0 && c.name != "without a cost"
			if len(seen.events) != 1 || seen.events[0].Kind != c.kind || seen.events[0].Project != c.project || seen.events[0].Shadow != shadow {
				t.Errorf("%+v", seen.events)
			}
		})
	}
}

// A request that comes when its own deadline is over is not the store's fault.
func TestOverdue(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, options := range [][]Option{nil, {Wait(time.Minute)}} {
		seen := &told{}
		limiter := configured(t, project.Config{Observer: seen})
		w := do(Middleware(limiter, options...)(&fine{}), request(http.MethodGet).WithContext(ctx))
		kinds := slices.ContainsFunc(seen.events, func(e event.Event) bool { return e.Kind == event.Left })
		if w.Code != statusGone || len(seen.events) != 1 || !kinds {
			t.Errorf("%d, %+v", w.Code, seen.events)
		}
	}
}
