package admin

import (
	"testing"
)

func TestOverview(t *testing.T) {
	r := newRig(t, usual)
	for range 3 {
		if status := r.call(t, "search", "gpt-4o"); status != 200 {
			t.Fatalf("a call gets %d", status)
		}
	}
	for range 3 {
		r.call(t, "small", "gpt-4o")
	}
	o := as[Overview](t, r.want(t, 200, "GET", "/v1/overview", ""))
	if o.Totals.Passed != 5 || o.Totals.Denied != 1 || o.ProjectCount != 2 || o.Mode != "enforce" || o.Version != "test" {
		t.Errorf("%+v", o)
	}
	small := o.Projects[0]
	if small.Name != "small" || small.Pressure != 1 || small.Closest != "minute" || small.Minute.Passed != 2 || small.Minute.Denied != 1 {
		t.Errorf("the project that is closest to its limit is %+v", small)
	}
}
