package httplimit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// told keeps what happened to requests, and whether they went on.
type told struct{ events []ratelimit.Event }

func (t *told) Observe(_ context.Context, e ratelimit.Event) { t.events = append(t.events, e) }

// Every request reaches the observers once, those of nobody too: who tries with
// Shadow wants to know how many there are.
func TestObserved(t *testing.T) {
	nobody := httptest.NewRequest(http.MethodGet, "/", nil)
	broken := Cost(func(*http.Request) (int, int, error) { return 0, 0, errors.New("no cost") })
	for _, c := range []struct {
		name    string
		request *http.Request
		options []Option
		kind    ratelimit.EventKind
		project string
	}{
		{"passes", request(http.MethodGet), nil, ratelimit.EventAdmitted, "p"},
		{"without a project", nobody, nil, ratelimit.EventRefused, ""},
		{"without a project, in the shadow", nobody, []Option{Shadow()}, ratelimit.EventRefused, ""},
		{"without a cost", request(http.MethodGet), []Option{broken}, ratelimit.EventRefused, "p"},
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
		kinds := slices.ContainsFunc(seen.events, func(e ratelimit.Event) bool { return e.Kind == ratelimit.EventLeft })
		if w.Code != statusGone || len(seen.events) != 1 || !kinds {
			t.Errorf("%d, %+v", w.Code, seen.events)
		}
	}
}
