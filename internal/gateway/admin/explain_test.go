package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// asking is a gateway with limits of every kind, each of which a second call of its test meets.
const asking = `
state: memory
providers:
  openai:
    base_url: MOCK
    models:
      gpt-4o: {max_rpm: 1000, max_tpm: 100000}
      once: {max_rpm: 1}
      daily: {max_rpd: 1}
      few: {max_tpm: 40}
      shared: {max_rpm: 10}
      paced: {max_rpm: 60, pace: even}
      alone: {max_concurrent: 1}
prices:
  gpt-4o: {input: 2, output: 10}
defaults: {max_wait: 0s}
users: {header: X-User-ID}
runs: {calls: 1}
projects:
  acme: {requests_per_day: 1}
  team: {requests_per_day: 100}
  team/search: {tokens_per_minute: 60}
  people: {}
  "people/*": {requests_per_hour: 1}
  shares: {max_share: 10%}
  halves: {requests_per_minute: 4}
  halves/a: {max_share: 25%}
  rich: {dollars: 0.0003}
  narrow: {models: [gpt-4o]}
`

// asks sends a call to the gateway with headers, and returns its status and its id.
func (r *rig) asks(t testing.TB, model string, headers ...string) (status int, id string) {
	t.Helper()
	name, _ := json.Marshal(model)
	return r.asksFor(t, fmt.Sprintf(`{"model": %s, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}`, name), headers...)
}

func (r *rig) asksFor(t testing.TB, body string, headers ...string) (status int, id string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.clients+"/openai/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	r.settle(t)
	return resp.StatusCode, resp.Header.Get("X-Gateway-Request-Id")
}

func (r *rig) explained(t testing.TB, id string) Explanation {
	t.Helper()
	e := as[Explanation](t, r.want(t, 200, "GET", "/v1/decisions/"+url.PathEscape(id), ""))
	if e.ID != id || e.Decision.ID != id {
		t.Fatalf("%s is explained as %s", id, e.ID)
	}
	return e
}

// limit returns what a limit of an owner has answered.
func (e *Explanation) limit(t testing.TB, scope, owner, limit string) AskedLimit {
	t.Helper()
	for _, l := range e.Limits {
		if l.Scope == scope && l.Owner == owner && l.Limit == limit {
			return l
		}
	}
	t.Fatalf("%s of %s %q is not among %+v", limit, scope, owner, e.Limits)
	return AskedLimit{}
}

// Explain says which limit of which owner has denied a call, for each kind of owner, and what was left.
func TestExplainEveryScope(t *testing.T) {
	for name, c := range map[string]struct {
		model                string
		headers              []string
		status               int
		scope, owner, limit  string
		remaining, most      int64
		setting, says, tells string
	}{
		"the model":            {"once", nil, 429, "model", "once", "max_rpm", 0, 1, "max_rpm", `model "once" has 0 of its 1 requests a minute left`, `raise max_rpm of model "once" from 1 requests to at least 2 requests`},
		"the model's day":      {"daily", nil, 429, "model", "daily", "max_rpd", 0, 1, "max_rpd", "requests a day", "raise max_rpd"},
		"a pace":               {"paced", nil, 0, "model", "paced", "max_rpm_pace", 0, 6, "pace", "", "raise burst"},
		"a project":            {"gpt-4o", []string{"X-Project-ID", "acme"}, 429, "project", "acme", "requests_per_day", 0, 1, "requests_per_day", `project "acme" has 0 of its 1 requests a day left`, `raise requests_per_day of project "acme" from 1 requests to at least 2 requests`},
		"a project above":      {"gpt-4o", []string{"X-Project-ID", "acme/search/eu"}, 429, "project", "acme", "requests_per_day", 0, 1, "requests_per_day", `project "acme"`, "raise"},
		"a user":               {"gpt-4o", []string{"X-Project-ID", "people", "X-User-ID", "ann"}, 429, "user", "people/ann", "requests_per_hour", 0, 1, "requests_per_hour", `by project "people" for user "ann" was denied`, `of user "people/ann"`},
		"a run":                {"gpt-4o", []string{"X-Run-ID", "r-1"}, 402, "run", "r-1", "runs.calls", 0, 1, "runs.calls", `run "r-1"`, "Begin a new run"},
		"a share":              {"shared", []string{"X-Project-ID", "shares"}, 429, "model", "shared", "max_rpm_share", 0, 1, "weight", "share", "raise the project's max_share"},
		"a share of a project": {"gpt-4o", []string{"X-Project-ID", "halves/a"}, 429, "project", "halves", "requests_per_minute_share", 0, 1, "weight", `share of 1 of the 4 requests a minute of project "halves"`, "raise the project's max_share: it has used 1 requests of its share of 1 requests of requests_per_minute of project \"halves\""},
		"dollars for good":     {"gpt-4o", []string{"X-Project-ID", "rich"}, 402, "project", "rich", "dollars", -1, 300_000, "dollars", "$", "it does not reset"},
		"tokens of a sub-team": {"gpt-4o", []string{"X-Project-ID", "team/search"}, 429, "project", "team/search", "tokens_per_minute", -1, 60, "tokens_per_minute", "tokens a minute", "tokens_per_minute"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, asking)
			status, id := 200, ""
			for n := 0; status == 200 && n < 50; n++ {
				before := id
				if status, id = r.asks(t, c.model, c.headers...); status == 200 && n > 0 && before == id {
					t.Fatal("two requests have one id")
				}
			}
			if c.status != 0 && status != c.status {
				t.Fatalf("the call ends with %d: want %d", status, c.status)
			}
			e := r.explained(t, id)
			l := e.limit(t, c.scope, c.owner, c.limit)
			if l.Enough || l.Max != c.most || l.Setting != c.setting || l.Needed < 1 || c.remaining >= 0 && l.Remaining != c.remaining || l.Remaining >= l.Needed {
				t.Errorf("%+v", l)
			}
			d := e.Decision
			if d.Outcome != gateway.Denied || d.Limit != c.limit || d.Scope != c.scope || d.Owner != c.owner || d.Waited != 0 {
				t.Errorf("%+v", d) // it may not wait: how long the decision took is no wait
			}
			if !strings.Contains(e.Sentence, "was denied") || !strings.Contains(e.Sentence, c.says) {
				t.Errorf("the sentence: %s", e.Sentence)
			}
			if advice := strings.Join(e.Advice, "\n"); !strings.Contains(advice, c.tells) {
				t.Errorf("the advice: %s", advice)
			}
		})
	}
}

// Explain says of a call that passed what was left before it, of every limit.
func TestExplainWhatPassed(t *testing.T) {
	r := newRig(t, asking)
	for i := range int64(3) {
		_, id := r.asks(t, "gpt-4o", "X-Project-ID", "team/search/eu")
		e := r.explained(t, id)
		for _, c := range []struct {
			scope, owner, limit string
			most, remaining     int64
		}{
			{"model", "gpt-4o", "max_rpm", 1000, 1000 - i},
			{"project", "team", "requests_per_day", 100, 100 - i},
		} {
			if l := e.limit(t, c.scope, c.owner, c.limit); !l.Enough || l.Max != c.most || l.Remaining != c.remaining || l.Needed != 1 || l.ResetsAt.IsZero() || l.RetryAfter != 0 {
				t.Errorf("call %d: %+v", i, l)
			}
		}
		if l := e.limit(t, "project", "team/search", "tokens_per_minute"); l.Unit != "tokens" || l.Needed < 2 || l.Remaining > 60 {
			t.Errorf("call %d: %+v", i, l)
		}
		testkit.Equal(t, "the advice", []string{}, e.Advice)
		testkit.Equal(t, "the sentence", `The call of model "gpt-4o" by project "team/search/eu" passed: every limit had enough left.`, e.Sentence)
	}
}

// A key has limits of its own, which are explained, and so is a call of a model that it may not call.
func TestExplainKeys(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	r := newRig(t, strings.Replace(asking, "base_url: MOCK", "base_url: MOCK\n    key: {env: TEST_PROVIDER_KEY}", 1)+"keys: required\n")
	secret, key, err := r.gateway.Keys().CreateKey(t.Context(), keys.Key{Project: "people", Limit: project.Limit{RequestsPerMinute: 1}, Models: []string{"gpt-4o"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.asks(t, "gpt-4o", "Authorization", "Bearer "+secret)
	status, id := r.asks(t, "gpt-4o", "Authorization", "Bearer "+secret)
	e := r.explained(t, id)
	if l := e.limit(t, "key", key.ID, "requests_per_minute"); status != 429 || l.Enough || l.Max != 1 || l.Remaining != 0 || l.Setting != "requests_per_minute" || l.RetryAfter <= 0 || l.RetryAfter > 60 {
		t.Errorf("%d %+v", status, l)
	}
	if d := e.Decision; d.Scope != "key" || d.Owner != key.ID {
		t.Errorf("%+v", d)
	}
	status, id = r.asks(t, "daily", "Authorization", "Bearer "+secret)
	e = r.explained(t, id)
	if status != 403 || e.Decision.Outcome != gateway.Refused || len(e.Limits) != 0 || !strings.Contains(e.Sentence, "was refused before any limit was asked: key") {
		t.Errorf("%d %+v", status, e)
	}
}

// Calls that can never pass, that an operator or a provider has paused, and that have no price are
// explained, too.
func TestExplainOtherDenials(t *testing.T) {
	r := newRig(t, asking)
	long := fmt.Sprintf(`{"model": "few", "messages": [{"role": "user", "content": %q}]}`, strings.Repeat("word ", 500))
	status, id := r.asksFor(t, long)
	e := r.explained(t, id)
	if l := e.limit(t, "model", "few", "max_tpm"); status != 400 || !l.Never || l.Enough || l.Max != 40 || l.Remaining != 40 || l.RetryAfter != 0 {
		t.Errorf("%d %+v", status, l)
	}
	if !strings.Contains(strings.Join(e.Advice, " "), "Ask for at most 40 tokens at once") || len(e.Advice) != 1 {
		t.Errorf("%q", e.Advice)
	}

	r.want(t, 200, "PATCH", "/v1/projects/team", `{"paused": true}`)
	status, id = r.asks(t, "gpt-4o", "X-Project-ID", "team/search")
	e = r.explained(t, id)
	if d := e.Decision; status != 429 || d.Limit != gateway.LimitPaused || d.Scope != "project" || d.Owner != "team" || len(e.Limits) != 0 || !strings.Contains(e.Sentence, `has paused project "team"`) {
		t.Errorf("%d %+v", status, e)
	}
	testkit.Equal(t, "the advice", []string{`Resume project "team".`}, e.Advice)

	status, id = r.asks(t, "daily", "X-Project-ID", "rich")
	e = r.explained(t, id)
	if status != 403 || e.Decision.Outcome != gateway.Denied || !strings.Contains(e.Sentence, "the price of model") || len(e.Advice) != 1 || !strings.Contains(e.Advice[0], "unpriced") {
		t.Errorf("%d %+v", status, e)
	}

	r.asks(t, "gpt-4o", "X-Mock", "status=429 retry-after=30s")
	status, id = r.asks(t, "gpt-4o")
	e = r.explained(t, id)
	if l := e.limit(t, "model", "gpt-4o", "paused"); status != 429 || l.Enough || l.RetryAfter <= 0 || l.RetryAfter > 30 || !strings.Contains(strings.Join(e.Advice, " "), "takes no calls") {
		t.Errorf("%d %+v %q", status, l, e.Advice)
	}
}

// A request that nobody has made, or that is not kept any more, is not explained.
func TestExplainUnknown(t *testing.T) {
	r := newRig(t, usual)
	for _, id := range []string{"gw_nobody", "%00", strings.Repeat("x", 4000), "%E2%80%AE", "..%2f..%2fetc"} {
		if a := r.want(t, 404, "GET", "/v1/decisions/"+id, ""); !strings.Contains(a.text, "it is no longer kept; GET /v1/decisions lists those that are") || len(a.text) > 600 {
			t.Error(a.text)
		}
	}
	_, id := r.asks(t, "gpt-4o")
	r.explained(t, id)
	for range 1024 {
		r.asks(t, "gpt-6-nano", "X-Project-ID", "not an id")
	}
	r.explained(t, id) // refusals do not push out what was admitted
}

// A denial for want of a slot gives no time: a slot comes back when a call ends, and nobody knows when.
func TestAdviceOnSlots(t *testing.T) {
	e := gateway.Explained{Record: gateway.Record{Outcome: gateway.Denied, Project: "acme"}}
	limits := []AskedLimit{{Limit: "max_concurrent", Setting: "max_concurrent", Unit: "calls", Scope: "model", Owner: "alone", Max: 1, Needed: 1, RetryAfter: 599.7}}
	want := []string{
		`Wait until one of the 1 calls under way ends, or raise max_concurrent of model "alone" from 1 calls to at least 2 calls.`,
		`Raise max_wait of project "acme" (0s): its calls do not wait.`,
	}
	if got := advice(&e, limits); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// The wait of a call is a fact, so it is not rounded up to seconds as a wait to come is.
func TestExplainSaysHowLongACallWaited(t *testing.T) {
	got := sentence(&gateway.Explained{Record: gateway.Record{Outcome: gateway.Passed, Model: "some-model", Waited: 2006400 * time.Microsecond}})
	testkit.Equal(t, "the sentence", `The call of model "some-model" waited 2.006s, and passed: every limit had enough left.`, got)
}

// Nobody is advised to let calls wait for a day.
func TestAdviceOnLongWaits(t *testing.T) {
	e := gateway.Explained{Record: gateway.Record{Outcome: gateway.Denied, Project: "acme"}}
	for wait, want := range map[float64]int{600: 2, 601: 1} {
		if got := advice(&e, []AskedLimit{{Limit: "requests_per_day", Unit: "requests", Scope: "project", Owner: "acme", RetryAfter: wait}}); len(got) != want {
			t.Errorf("after %v seconds: %q", wait, got)
		}
	}
}

// A denial by a share among several projects names the limit that they share.
func TestAdviceOnShares(t *testing.T) {
	l := AskedLimit{Limit: "tokens_per_minute_share", Setting: "weight", Unit: "tokens", Scope: "project", Owner: "acme", Max: 500, Needed: 300, RetryAfter: 49, Share: &AskedShare{500, 610, 3}}
	want := `Wait 49s, or raise the project's weight or its min_share: 3 projects share tokens_per_minute of project "acme", and this one has used 610 tokens of its share of 500 tokens.`
	if got := l.advice(); got != want {
		t.Error(got)
	}
}

func TestInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1500 * time.Microsecond: "2ms",
		48*time.Second + 1:      "49s",
		time.Hour:               "1h",
		24*time.Hour - 1:        "24h",
		23*time.Hour + 58*time.Minute + 33*time.Second:  "23h59m",
		326*time.Hour + 55*time.Minute + 38*time.Second: "14 days",
	} {
		if got := inWords(d.Seconds()); got != want {
			t.Errorf("%v: %s; want %s", d, got, want)
		}
	}
}
