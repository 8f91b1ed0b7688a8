package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/project"
)

// treeOf has a tree of projects, in which each user of acme/search may make two calls.
const treeOf = `
providers:
  openai: {base_url: MOCK}
  anthropic: {base_url: MOCK}
defaults: {max_wait: 0s}
users: {header: X-User-ID, field: [safety_identifier, user, metadata.user_id]}
projects:
  acme: {requests_per_day: 7}
  acme/search: {requests_per_day: 6}
  "acme/search/*": {requests_per_day: 2}
`

// A call is charged to its user and to all above; a denial says whose limit it is.
func TestUsersByHeader(t *testing.T) {
	r := newRig(t, treeOf, mockprovider.Config{})
	for _, c := range []struct {
		project, user string
		status        int
		limit         string
	}{
		{"acme/search", "alice", 200, ""},
		{"acme/search", "alice", 200, ""},
		{"acme/search", "alice", 429, "acme/search/alice"},
		{"acme/search", "bob", 200, ""},
		{"acme/search", "", 200, ""}, // the project alone counts
		{"acme/search", "", 200, ""},
		{"acme/search", "carol", 200, ""},
		{"acme/search", "dave", 429, "acme/search"},
		{"acme/other", "alice", 200, ""}, // there is no template
		{"acme/other", "alice", 429, "acme"},
		{"default", "alice", 200, ""},
	} {
		headers := []string{"X-Project-ID", c.project}
		if c.user != "" {
			headers = append(headers, "X-User-ID", c.user)
		}
		a := r.post(t, chat, hello, headers...)
		if a.status != c.status {
			t.Fatalf("%s, %s: %d %s", c.project, c.user, a.status, a.body)
		}
		rec := r.last(t)
		if rec.Project != c.project || rec.User != c.user {
			t.Errorf("%s, %s: the record has %q and %q", c.project, c.user, rec.Project, rec.User)
		}
		if c.limit != "" {
			if want := `project \"` + c.limit + `\" has 0 of its`; !strings.Contains(a.body, want) {
				t.Errorf("%s, %s: %s", c.project, c.user, a.body)
			}
		}
	}
}

// A body names a user where no header does.
func TestUsersByField(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, treeOf, upstream)
	for _, c := range []struct{ path, fields, header, want string }{
		{chat, `"user":"alice"`, "", "alice"},
		{chat, `"user":"alice","safety_identifier":"bob"`, "", "bob"},
		{chat, `"user":"alice"`, "carol", "carol"},
		{chat, `"user":5`, "", ""},
		{messages, `"metadata":{"user_id":"d\u0061ve"}`, "", "dave"},
		{messages, `"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"erin\",\"session_id\":\"s\"}"}`, "", "erin"},
		{messages, `"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"s\"}"}`, "", "d"},
		{chat, `"user":"a/b"`, "", "a%2Fb"},
		{chat, `"user":"../other"`, "", "..%2Fother"},
		{chat, `"user":".."`, "", "%2E%2E"},
		{chat, `"user":"*"`, "", "%2A"},
		{chat, `"user":"~0"`, "", "%7E0"},
		{chat, `"user":"a\u0000\n é"`, "", "a%00%0A%20%C3%A9"},
		{chat, `"user":"` + strings.Repeat("x", 1<<20) + `"`, "", "~8f990ba0b577b51cf009ea049368c16b"},
	} {
		headers := []string{"X-Project-ID", "new"}
		if c.header != "" {
			headers = append(headers, "X-User-ID", c.header)
		}
		if a := r.post(t, c.path, strings.Replace(hello, "{", "{"+c.fields+",", 1), headers...); a.status != 200 {
			t.Fatalf("%.80s: %d %s", c.fields, a.status, a.body)
		}
		got := <-upstream.requests
		if sent := <-upstream.bodies; !strings.Contains(sent, c.fields) {
			t.Errorf("%.80s: the body was sent as %.100s", c.fields, sent)
		}
		if got.Header["X-User-Id"] != nil || got.Header["X-Project-Id"] != nil {
			t.Errorf("%.80s: sent with %v", c.fields, got.Header)
		}
		rec := r.last(t)
		if rec.Project != "new" || rec.User != c.want {
			t.Errorf("%.80s: project %q, user %q", c.fields, rec.Project, rec.User)
		}
	}
}

// No user is anybody's but the project's, whatever its name, and no two users are one.
func TestUserNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringOf(rapid.RuneFrom([]rune("/.*~%a\x00 é"))), rapid.String(), rapid.StringMatching(`[a-z]{90,200}`)).Filter(func(s string) bool { return s != "" })
		one, other := name.Draw(t, "one"), name.Draw(t, "other")
		id := rapid.SampledFrom([]string{"p", "acme/search", strings.Repeat("p", 94)}).Draw(t, "project")
		room := project.MaxID - len(id) - 1
		a, b := userName(one, room), userName(other, room)
		if err := project.CheckID(id + "/" + a); err != nil || strings.Contains(a, "/") || strings.Trim(a, ".") == "" {
			t.Fatalf("%q: %q, %v", one, a, err)
		}
		if (one == other) != (a == b) {
			t.Fatalf("%q is %q, and %q is %q", one, a, other, b)
		}
	})
}

// Headers that come twice, or have no valid id, are refused, and nothing is charged.
func TestBadHeadersOfOwners(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, treeOf+"runs: {calls: 5}\n", upstream)
	for _, c := range []struct {
		header http.Header
		want   string
	}{
		{http.Header{"X-User-Id": {"alice", "bob"}}, "X-User-Id more than once"},
		{http.Header{"X-User-Id": {"alice", "alice"}}, "X-User-Id more than once"},
		{http.Header{"X-Run-Id": {"1", "2"}}, "X-Run-Id more than once"},
		{http.Header{"X-Project-Id": {"acme", "other"}}, "X-Project-Id more than once"},
		{http.Header{"X-Run-Id": {"a b"}}, "1 to 128 visible ASCII"},
		{http.Header{"X-Run-Id": {""}}, "1 to 128 visible ASCII"},
		{http.Header{"X-Run-Id": {"é"}}, "1 to 128 visible ASCII"},
		{http.Header{"X-Run-Id": {strings.Repeat("r", 129)}}, "1 to 128 visible ASCII"},
		{http.Header{"X-Project-Id": {"acme/*"}}, "has the name *"},
		{http.Header{"X-Project-Id": {"acme//search"}}, "empty name"},
		{http.Header{"X-Project-Id": {"a/b/c/d/e/f/g/h"}, "X-User-Id": {"alice"}}, "no room for its users"},
		{http.Header{"X-Project-Id": {strings.Repeat("p", 100)}, "X-User-Id": {strings.Repeat("u", 100)}}, "no room for its users"},
	} {
		var headers []string
		for name, values := range c.header {
			for _, value := range values {
				headers = append(headers, name, value)
			}
		}
		if a := r.post(t, chat, hello, headers...); a.status != 400 || !strings.Contains(a.body, c.want) {
			t.Errorf("%v: %d %s", c.header, a.status, a.body)
		}
	}
	if len(upstream.requests) > 0 {
		t.Errorf("%d were sent", len(upstream.requests))
	}
	if d, err := r.Projects().Peek(t.Context(), "acme"); err != nil || d.Windows()[0].Remaining != 7 {
		t.Errorf("%+v, %v", d.Windows(), err)
	}
}

// With keys, a client is a user of its key's project, whatever its headers say.
func TestUsersOfAKey(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	r := newRig(t, withKeys+"users: {header: X-User-ID}\n", mockprovider.Config{})
	secret, _ := r.newKey(t, "acme/search", "")
	for user, want := range map[string]string{"alice": "alice", "../../other/bob": "..%2F..%2Fother%2Fbob", "acme/search/x": "acme%2Fsearch%2Fx"} {
		if a := r.post(t, chat, hello, "Authorization", "Bearer "+secret, "X-User-ID", user, "X-Project-ID", "other"); a.status != 200 {
			t.Fatalf("%s: %d %s", user, a.status, a.body)
		}
		if rec := r.last(t); rec.Project != "acme/search" || rec.User != want {
			t.Errorf("%s: project %q, user %q", user, rec.Project, rec.User)
		}
	}
}

// Every level that names models must name a call's model.
func TestModelsOfEveryLevel(t *testing.T) {
	r := newRig(t, `
providers: {openai: {base_url: MOCK}}
users: {header: X-User-ID}
defaults: {models: ["gpt*"]}
projects:
  acme/search: {models: ["*-mini", "gpt-4o"]}
  "acme/search/*": {models: ["*o"]}
  free: {models: ["*"]}
`, mockprovider.Config{})
	for _, c := range []struct {
		project, user, model string
		status               int
	}{
		{"acme", "", "gpt-4o", 200},
		{"acme", "", "o1-mini", 403},
		{"acme/search", "", "gpt-4o", 200},
		{"acme/search", "", "gpt-4o-mini", 200},
		{"acme/search", "", "gpt-5", 403},
		{"acme/search", "", "o1-mini", 403}, // which the defaults forbid
		{"acme/search", "alice", "gpt-4o", 200},
		{"acme/search", "alice", "gpt-4o-mini", 403},
		{"acme/search/bob/deeper", "", "gpt-4o-mini", 403},
		{"free", "", "o1-mini", 200},
		{"free/child", "", "o1-mini", 200},
	} {
		headers := []string{"X-Project-ID", c.project}
		if c.user != "" {
			headers = append(headers, "X-User-ID", c.user)
		}
		a := r.post(t, chat, strings.Replace(hello, "gpt-4o", c.model, 1), headers...)
		if a.status != c.status || a.status == 403 && !strings.Contains(a.body, "may not call") {
			t.Errorf("%+v: %d %s", c, a.status, a.body)
		}
	}
}

// The estimator and the metrics know projects, and not users: clients may invent any number of these.
func TestUsersAreBounded(t *testing.T) {
	r := newRig(t, treeOf, mockprovider.Config{})
	for i := range 5 {
		r.post(t, chat, hello, "X-Project-ID", "acme/search", "X-User-ID", fmt.Sprint("user", i))
	}
	r.settled(t)
	families, err := r.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			for _, label := range m.Label {
				if strings.Contains(label.GetValue(), "user") {
					t.Errorf("%s has the label %s", f.GetName(), label.GetValue())
				}
				if f.GetName() == "ratelimit_decisions_total" && label.GetName() == "project" && label.GetValue() != "acme/search" {
					t.Errorf("a decision is of %q", label.GetValue())
				}
			}
		}
	}
}

// Users of a project that nobody has configured share its default limit, and paths that nobody has
// configured share nothing.
func TestUsersShareTheDefaultOfTheirProject(t *testing.T) {
	r := newRig(t, `
providers:
  openai: {base_url: MOCK}
defaults: {requests_per_day: 3, max_wait: 0s}
users: {header: X-User-ID}
`, mockprovider.Config{})
	for i, c := range []struct {
		project, user string
		status        int
	}{
		{"acme", "alice", 200}, {"acme", "bob", 200}, {"acme", "", 200}, {"acme", "carol", 429},
		{"eu/one", "alice", 200}, {"eu/one", "bob", 200}, {"eu/one", "carol", 200}, {"eu/one", "", 429},
		{"eu/two", "alice", 200}, {"eu", "", 200},
	} {
		headers := []string{"X-Project-ID", c.project}
		if c.user != "" {
			headers = append(headers, "X-User-ID", c.user)
		}
		if a := r.post(t, chat, hello, headers...); a.status != c.status {
			t.Errorf("call %d, of %s of %s: %d, want %d: %s", i, c.user, c.project, a.status, c.status, a.body)
		}
	}
}
