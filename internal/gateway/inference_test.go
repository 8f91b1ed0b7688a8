package gateway

import (
	"strings"
	"testing"
)

// A provider that is an inference gateway gets the project and the priority of a call from the gateway, and not from the
// client, who could otherwise invent users to get more of the servers. Other providers get what the client has sent.
func TestInferenceGatewaysGetTheProject(t *testing.T) {
	const yaml = `
providers:
  openai: {base_url: MOCKFLAGS}
projects:
  acme: {priority: 10}
  plain: {}
  low: {priority: -5}
users: {header: X-Gateway-Inference-Fairness-ID}
`
	for _, c := range []struct {
		flags, project, fairness   string // fairness is the header that the client sends
		user, wantID, wantPriority string
	}{
		{", inference_gateway: true", "acme", "alice", "alice", "acme", "priority-10"},
		{", inference_gateway: true", "acme", "", "", "acme", "priority-10"},
		{", inference_gateway: true", "plain", "", "", "plain", ""},
		{", inference_gateway: true", "low", "", "", "low", "priority--5"},
		{"", "acme", "alice", "alice", "", "mine"},
	} {
		upstream := newSeen()
		r := newRigBefore(t, strings.ReplaceAll(yaml, "MOCKFLAGS", "MOCK"+c.flags), upstream)
		headers := []string{"X-Project-ID", c.project, fieldObjective, "mine"}
		if c.fairness != "" {
			headers = append(headers, fieldFairness, c.fairness)
		}
		if a := r.post(t, chat, hello, headers...); a.status != 200 {
			t.Fatalf("%+v: %d %s", c, a.status, a.body)
		}
		if got := r.last(t).User; got != c.user {
			t.Errorf("%+v: the user is %q", c, got)
		}
		sent := (<-upstream.requests).Header
		if id, priority := sent.Get(fieldFairness), sent.Get(fieldObjective); id != c.wantID || priority != c.wantPriority {
			t.Errorf("%+v: sent are %q and %q", c, id, priority)
		}
	}
}
