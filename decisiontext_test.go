package ratelimit_test

import (
	"fmt"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// A decision in a log is one sentence, and not all of its numbers.
func TestADecisionPrintsAsASentence(t *testing.T) {
	rl := inMemory(t, quotas{"m": {MaxRPM: 1}})
	withProjects(t, rl, project.Config{Limits: map[string]project.Limit{"p": {RequestsPerDay: 1}}})
	_, allowed := rl.TryAcquire("m", 0)
	_, denied := rl.TryAcquire("m", 0)
	_, spent, err := rl.Projects().Take(t.Context(), project.Call{Project: "p"})
	if err != nil {
		t.Fatal(err)
	}
	_, exceeded, err := rl.Projects().Take(t.Context(), project.Call{Project: "p"})
	if err != nil {
		t.Fatal(err)
	}
	larger, err := rl.DecideCall(t.Context(), ratelimit.Call{Project: "p", Requests: 2})
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		larger.Reason():              `more than project "p" may use 1 requests a day: it can never pass`,
		fmt.Sprintf("%+v", allowed):  "allowed: within the quota",
		fmt.Sprintf("%v", denied):    "denied: " + denied.Reason(),
		fmt.Sprintf("%+v", spent):    "allowed",
		fmt.Sprintf("%+v", exceeded): "denied: " + exceeded.Reason(),
	} {
		if got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}
