package gateway

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/project"
)

const family = `
keys: required
providers:
  openai: {base_url: MOCK, key: {env: TEST_PROVIDER_KEY}}
prices:
  gpt-4o: {input: 2, output: 10}
projects:
  acme: {dollars_per_month: 5_000, tokens_per_minute: 100_000}
  acme/search: {requests_per_day: 10, dollars: 1}
  other: {requests_per_day: 987_654}
`

// A client with a key learns what is left at every level above the key, without any charge.
func TestMe(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-provider")
	r := newRigBefore(t, family, newSeen())
	secret, key := r.newKey(t, "acme/search", "laptop")
	if a := r.post(t, chat, `{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}`, "Authorization", "Bearer "+secret); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	r.settled(t)
	var a answer
	for range 3 { // asking costs nothing
		a = r.do(t, http.MethodGet, pathMe, "", "Authorization", "Bearer "+secret)
	}
	var me struct {
		Project, Key string
		Levels       []struct {
			Kind, ID string
			Limits   []struct {
				Limit, Unit     string
				Max, Used, Left json.Number
				Total           bool
				Reset           float64 `json:"reset_after_seconds"`
			}
		}
	}
	if err := json.Unmarshal([]byte(a.body), &me); err != nil || a.status != http.StatusOK {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	var got []string
	for _, l := range me.Levels {
		for _, each := range l.Limits {
			if each.Total != (each.Reset == 0) {
				t.Errorf("%s: reset after %v seconds, total: %v", each.Limit, each.Reset, each.Total)
			}
			got = append(got, strings.Join([]string{l.Kind, l.ID, each.Limit, each.Unit, each.Used.String(), each.Left.String(), each.Max.String()}, " "))
		}
	}
	want := []string{
		"project acme/search requests_per_day requests 1 9 10",
		"project acme/search dollars dollars 0.000046 0.999954 1.00",
		"project acme tokens_per_minute tokens 7 99993 100000",
		"project acme dollars_per_month dollars 0.000046 4999.999954 5000.00",
	}
	if me.Project != "acme/search" || me.Key != key.ID || strings.Join(got, "\n") != strings.Join(want, "\n") || len(me.Levels) != 3 {
		t.Errorf("%s", a.body)
	}
	if strings.Contains(a.body, "987654") || strings.Contains(a.body, secret) || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v %s", a.header, a.body)
	}
	if last := r.last(t); last.Outcome != Passed || last.Path != pathMe || last.Key != key.ID {
		t.Errorf("%+v", last)
	}
}

// Users and runs are levels, too.
func TestMeOfAUserAndARun(t *testing.T) {
	r := newRigBefore(t, priced+"  acme/*: {requests_per_day: 5}\nusers: {header: X-User-ID}\nruns: {calls: 3, dollars: 2}\n", newSeen())
	headers := []string{"X-Project-ID", "acme", "X-User-ID", "alice", "X-Run-ID", "r1"}
	if a := r.post(t, chat, `{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}`, headers...); a.status != http.StatusOK {
		t.Fatal(a.body)
	}
	r.settled(t)
	a := r.do(t, http.MethodGet, pathMe, "", headers...)
	var me Me
	if err := json.Unmarshal([]byte(regexp.MustCompile(`"(max|used|left)": [0-9.]+,`).ReplaceAllString(a.body, "")), &me); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	var got []string
	for _, l := range me.Levels {
		for _, each := range l.Limits {
			got = append(got, l.Kind+" "+l.ID+" "+each.Name)
		}
	}
	if want := "project acme/alice requests_per_day, project acme dollars, run r1 runs.calls, run r1 runs.dollars"; strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// If the share of a client's project in a limit above it is used up, nothing of the limit is left for the
// client, whatever is left for others.
func TestMeOfAShare(t *testing.T) {
	r := newRig(t, "projects: {acme: {tokens_per_minute: 4_000, requests_per_minute: 100}, acme/ads: {max_share: 10%}}\n", mockprovider.Config{})
	for _, id := range []string{"acme/search", "acme/ads"} {
		res, _, err := r.Projects().Acquire(t.Context(), project.Call{Project: id, Estimated: 390})
		if err != nil {
			t.Fatal(err)
		}
		res.Commit(450, 0)
	}
	const divided = `"limit": "tokens_per_minute", "unit": "tokens", "max": 4000, "used": 900, "left": `
	for id, want := range map[string]string{"acme/search": "3100", "acme/ads": "0"} {
		a := r.do(t, http.MethodGet, pathMe, "", "X-Project-ID", id)
		body := strings.Join(strings.Fields(a.body), " ")
		if !strings.Contains(body, divided+want+",") || strings.Contains(body, `"share": { "max": 400, "used": 450, "projects": 2, "retry_after_seconds": `) != (id == "acme/ads") {
			t.Errorf("%s: %s", id, body)
		}
	}
	a := r.do(t, http.MethodGet, pathMe, "", "X-Project-ID", "acme/ads", "Accept", "text/html")
	if !strings.Contains(a.body, `<th scope="row">tokens a minute</th><td><b>0</b> of your share of 400</td><td>900</td><td>4,000</td>`) || strings.Contains(a.body, "used up") {
		t.Error(a.body)
	}
}

// A browser gets a page without scripts, whose style its policy allows.
func TestMePage(t *testing.T) {
	r := newRig(t, strings.Replace(priced, "acme:", `a<b>:`, 1), mockprovider.Config{})
	a := r.do(t, http.MethodGet, pathMe, "", "X-Project-ID", "a<b>", "Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "text/html; charset=utf-8" || a.header.Get("Vary") != "Accept, Cookie" {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	for _, has := range []string{"a&lt;b&gt;", "$0.01", "never", "<meter", "dollars in total"} {
		if !strings.Contains(a.body, has) {
			t.Errorf("no %s in %s", has, a.body)
		}
	}
	if strings.Contains(a.body, "<script") || strings.Contains(a.body, "style=") || strings.Contains(a.body, "a<b>") {
		t.Error(a.body)
	}
	_, style, _ := strings.Cut(a.body, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	hash := sha256.Sum256([]byte(style))
	if policy := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(hash[:])+"'") {
		t.Errorf("%s does not allow %s", policy, style)
	}
}

func TestMeRefuses(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-provider")
	withKeys, without := newRigBefore(t, family, newSeen()), newRigBefore(t, priced, newSeen())
	secret, _ := withKeys.newKey(t, "acme", "")
	for _, test := range []struct {
		name    string
		rig     *rig
		method  string
		path    string
		headers []string
		status  int
		says    string
	}{
		{"no key", withKeys, "GET", pathMe, nil, 401, "a valid virtual key is needed"},
		{"a key that is not valid", withKeys, "GET", pathMe, []string{"Authorization", "Bearer rl_nonsense"}, 401, "a valid virtual key is needed"},
		{"an unknown path without a key", withKeys, "GET", "/ratelimit/v2", nil, 401, "a valid virtual key is needed"},
		{"an unknown path", withKeys, "GET", "/ratelimit/v2", []string{"X-Api-Key", secret}, 404, pathMe},
		{"a method", withKeys, "POST", pathMe, []string{"X-Api-Key", secret}, 405, "GET or HEAD"},
		{"a bad project", without, "GET", pathMe, []string{"X-Project-ID", "a//b"}, 400, "X-Project-ID"},
		{"a page of another site", without, "GET", pathMe, []string{"Origin", "https://evil.example"}, 403, "another site"},
	} {
		a := test.rig.do(t, test.method, test.path, "", test.headers...)
		if a.status != test.status || !strings.Contains(a.body, test.says) || !json.Valid([]byte(a.body)) {
			t.Errorf("%s: %d %s", test.name, a.status, a.body)
		}
	}
}

func TestPrefersHTML(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/html": true, "text/*": true, "TEXT/HTML;q=0.9, application/json;q=0.8": true,
		"text/html;q=0.5, */*": false, "text/html;q=x": false, "text/html;q=0": false,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
	} {
		if got := prefersHTML([]string{accept}); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
}

func TestResetText(t *testing.T) {
	for seconds, want := range map[float64]string{0: "now", 0.4: "in 0s", 59.6: "in 1m", 90: "in 1m30s", 86_400: "in 24h", 3_660: "in 1h1m", 30 * 86_400: "in 30 days", 172_800: "in 2 days", 100_800: "in 28h", 10: "in 10s", 20 * 60: "in 20m", 36_000: "in 10h"} {
		if got := resetText(LevelLimit{Reset: seconds}); got != want {
			t.Errorf("%v seconds: %q, want %q", seconds, got, want)
		}
	}
}
