package httplimit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/project"
)

// Observers get every request once, also those without a project: with Shadow, an operator
// wants to know how many there are.
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
			seen := &recorder{}
			limiter := configured(t, project.Config{Observer: seen})
			do(Middleware(limiter, c.options...)(&fine{}), c.request)
			shadow := len(c.options) > 0 && c.name != "without a cost"
			events := seen.Since()
			if len(events) != 1 || events[0].Kind != c.kind || events[0].Project != c.project || events[0].Shadow != shadow {
				t.Errorf("%+v", events)
			}
		})
	}
}

// A request whose own deadline is over when it comes does not count as a loss of the store.
func TestOverdue(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, options := range [][]Option{nil, {Wait(time.Minute)}} {
		seen := &recorder{}
		limiter := configured(t, project.Config{Observer: seen})
		w := do(Middleware(limiter, options...)(&fine{}), request(http.MethodGet).WithContext(ctx))
		if events := seen.Since(); w.Code != statusClientLeft || len(events) != 1 || events[0].Kind != event.Left {
			t.Errorf("%d, %+v", w.Code, events)
		}
	}
}
