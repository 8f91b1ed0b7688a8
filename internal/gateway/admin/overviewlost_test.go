package admin

import (
	"fmt"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// On Redis, the overview has what all gateways have used. While Redis does not answer, it says so, and has
// the figures that it knows.
func TestOverviewOnRedis(t *testing.T) {
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	r := newRig(t, strings.Replace(usual, "state: memory", "state: "+proxy.PatientURL(), 1))
	other := newRig(t, strings.Replace(usual, "state: memory", "state: "+server.PatientURL(), 1))
	r.meets(t, other)
	r.call(t, "small", "gpt-4o")
	other.call(t, "small", "gpt-4o")
	o := as[Overview](t, r.want(t, 200, "GET", "/v1/overview", ""))
	small, model := row(t, o.Projects, "small"), row(t, o.Models, "gpt-4o")
	if small.Pressure != 1 || small.Minute.Passed != 2 || model.dimension(t, "max_rpm").Used != 2 || o.StoreLost != "" {
		t.Errorf("%+v", o)
	}
	proxy.Cut()
	testkit.Eventually(t, "Redis is lost", func() bool {
		o = as[Overview](t, r.want(t, 200, "GET", "/v1/overview", ""))
		return o.StoreLost != ""
	})
	if small := row(t, o.Projects, "small"); small.Minute.Passed == 0 || row(t, o.Models, "gpt-4o").Pressure != 0 {
		t.Errorf("%+v", o)
	}
}

// A store elsewhere is asked about many projects, some at a time, and not again within a few seconds.
func TestManyProjectsOnRedis(t *testing.T) {
	server := redistest.New(t)
	r := newRig(t, strings.Replace(usual, "state: memory", "state: "+server.PatientURL(), 1))
	limits := map[string]project.Limit{}
	for i := range 500 {
		limits[fmt.Sprintf("p%03d", i)] = project.Limit{RequestsPerMinute: 10}
	}
	if err := r.gateway.Projects().SetLimits(limits); err != nil {
		t.Fatal(err)
	}
	r.gateway.Projects().Spend(t.Context(), project.Call{Project: "p321"})
	var o Overview
	testkit.Eventually(t, "Redis has answered for all projects", func() bool { // those for which it was late are asked again
		o = as[Overview](t, r.want(t, 200, "GET", "/v1/overview?projects=10", ""))
		return len(r.lookout.due(false)) == 0
	})
	if o.Projects[0].Name != "p321" || o.Projects[0].Pressure != 0.1 || len(o.Projects[9].Dimensions) != 1 {
		t.Errorf("%+v", o.Projects)
	}
	r.lookout.looks, r.lookout.at = 1, r.lookout.at.Add(maxAge/2)
	if due := r.lookout.due(false); len(due) != 0 {
		t.Errorf("%d are asked again", len(due))
	}
	if r.lookout.at = r.lookout.at.Add(maxAge); len(r.lookout.due(false)) != 502 {
		t.Error("not all are asked again after a while")
	}
}
