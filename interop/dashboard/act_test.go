package dashboard_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// paused returns whether the API says that something is paused.
func paused(t *testing.T, r *rig, path string) bool {
	t.Helper()
	return r.get(t, path)["paused"] == true
}

func TestPauseAndResume(t *testing.T) {
	r := shared()
	b := open(t, r, "/#/")
	for _, c := range []struct{ page, kind, name, path string }{
		{"/#/", "model", "gpt-large", "/v1/quotas/gpt-large"},
		{"/#/", "project", "acme/chat", "/v1/projects/acme/chat"},
	} {
		b.visit(c.page)
		b.press("Pause " + c.name)
		b.shows("dialog[open] h2", fmt.Sprintf("Pause %s %s?", c.kind, c.name))
		if paused(t, r, c.path) {
			t.Fatal("it is paused before it was confirmed")
		}
		b.press("Pause")
		b.shows(".toast", c.name+" is paused")
		b.shows(".row .badge", "paused")
		if !paused(t, r, c.path) {
			t.Fatalf("%s is not paused", c.name)
		}
		b.press("Resume " + c.name)
		b.press("Resume")
		b.shows(".toast", c.name+" is resumed")
		if paused(t, r, c.path) {
			t.Fatalf("%s is not resumed", c.name)
		}
	}
	r.api(t, "PATCH", "/v1/projects/acme", map[string]any{"paused": true})
	b.visit("/#/project/acme/chat")
	b.press("Resume")
	b.shows("dialog[open] h2", "Resume project acme?")
	b.press("Resume")
	b.shows(".toast", "acme is resumed")
	b.visit("/#/keys")
	b.press("Pause indexer 3")
	b.press("Pause")
	b.shows("tbody .badge", "paused")
	b.press("Resume indexer 3")
	b.press("Resume")
	b.until(`document.querySelector('tbody .badge') === null`)
}

// A client may choose a project's name so that it is a way to something else in the paths of the API.
func TestNamesLeadNowhere(t *testing.T) {
	r := start(t, usual, "listen: 127.0.0.1:0")
	const name = "%2e%2e/quotas/gpt-large" // a browser reads %2e%2e as ..
	r.call(t, name, "gpt-small")
	b := open(t, r, "/#/")
	b.press("Pause " + name)
	b.press("Pause")
	b.shows(".toast", name+" is paused")
	if paused(t, r, "/v1/quotas/gpt-large") {
		t.Error("the model is paused that the name of a project leads to")
	}
	if !paused(t, r, "/v1/projects/"+url.PathEscape(name)) {
		t.Error("the project is not paused")
	}
}

// An address that names no page, or cannot be read, leads to the overview.
func TestAddressesOfNoPage(t *testing.T) {
	b := open(t, shared(), "/#/keys")
	for _, page := range []string{"/#/constructor", "/#/__proto__", "/#/project/%zz"} {
		b.turn(page)
		b.until(`document.querySelector('.page.overview') !== null`)
	}
}

// The form shows what will change before it does, and says what it lifts.
func TestSetLimits(t *testing.T) {
	r := shared()
	r.api(t, "PATCH", "/v1/projects/budgeted", map[string]any{"requests_per_minute": 60, "tokens_per_month": 1000})
	b := open(t, r, "/#/project/budgeted", "400 (Bad Request)")
	b.press("Set limits")
	b.fill("requests_per_minute", "120")
	b.fill("weight", "5")
	b.fill("tokens_per_month", "")
	b.shows(".preview", "Requests a minute: 60 → 120")
	b.shows(".preview", "This lifts tokens a month")
	limit := func() map[string]any { return r.get(t, "/v1/projects/budgeted")["limit"].(map[string]any) }
	if limit()["requests_per_minute"] != 60. {
		t.Fatalf("the limit is set before it was confirmed: %v", limit())
	}
	b.fill("tokens_per_month", "-5")
	b.shows(".preview .fault", "tokens_per_month")
	b.fill("tokens_per_month", "1000")
	b.shows(".preview", "Requests a minute: 60 → 120")
	b.until(`document.querySelector('.preview .fault') === null`)
	b.press("Apply")
	b.shows(".toast", "The limits of budgeted are set")
	if l := limit(); l["requests_per_minute"] != 120. || l["weight"] != 5. || l["tokens_per_month"] != 1000. {
		t.Errorf("the limit is %v", l)
	}
	b.press("Set limits")
	b.fill("fit", "true")
	b.fill("failed_calls", "reserved")
	b.shows(".preview", "Fit calls to what is left: as configured → true")
	b.press("Apply")
	b.shows(".toast", "The limits of budgeted are set")
	b.until(`document.querySelector('dialog') === null`)
	if p := r.get(t, "/v1/projects/budgeted"); p["fit"] != true || p["failed_calls"] != "reserved" {
		t.Errorf("the project is %v", p)
	}
	b.press("Set limits")
	b.fill("fit", "false")
	b.fill("failed_calls", "")
	b.shows(".preview", "Charge for failed calls: reserved → as configured")
	b.press("Apply")
	b.until(`document.querySelector('dialog') === null`)
	if p := r.get(t, "/v1/projects/budgeted"); p["fit"] != false || p["failed_calls"] != "free" {
		t.Errorf("the project is %v", p)
	}
	b.visit("/#/model/gpt-small")
	b.press("Set limits")
	b.fill("max_rpd", "5000")
	b.shows(".preview", "Requests a day")
	b.press("Apply")
	b.shows(".toast", "The limits of gpt-small are set")
	if q := r.get(t, "/v1/quotas/gpt-small")["quota"].(map[string]any); q["max_rpd"] != 5000. || q["max_rpm"] != 60. {
		t.Errorf("the quota is %v", q)
	}
}

// A project, or the whole gateway, counts in shadow mode and denies nothing; the page says so.
func TestShadow(t *testing.T) {
	r := shared()
	r.api(t, "PATCH", "/v1/projects/shaded", map[string]any{"requests_per_minute": 1})
	b := open(t, r, "/#/project/shaded")
	b.press("Set limits")
	b.fill("mode", "shadow")
	b.shows(".preview", "Mode: enforce → shadow")
	b.press("Apply")
	b.shows(".page-head .badge", "shadow")
	for range 2 {
		if status := r.call(t, "shaded", "gpt-large"); status != 200 {
			t.Errorf("in shadow mode: %d", status)
		}
	}
	b.shows("tbody", "shadow: denied by requests a minute")
	b.press("Mode: enforce")
	b.press("Shadow")
	b.until(`!document.getElementById('mode').hidden`)
	b.press("Mode: shadow")
	b.press("Enforce")
	b.until(`document.getElementById('mode').hidden`)
	if mode := r.get(t, "/v1/gateway")["mode"]; mode != "enforce" {
		t.Errorf("the mode is %v", mode)
	}
}

func TestReset(t *testing.T) {
	r := shared()
	r.call(t, "forgetful", "gpt-large")
	b := open(t, r, "/#/project/forgetful")
	b.press("Reset")
	b.shows("dialog[open] h2", "Reset project forgetful?")
	b.press("Reset")
	b.shows(".toast", "The usage of forgetful is reset")
	b.visit("/#/audit")
	b.shows("tbody tr:first-child", "project.reset")
	b.shows("tbody tr:first-child", "forgetful")
	b.shows("tbody tr:first-child", "done")
}

// A key's secret is shown once, works, and is nowhere on the page afterwards.
func TestKeys(t *testing.T) {
	r := shared()
	b := open(t, r, "/#/keys")
	b.press("Create a key")
	b.fill("project", "acme/chat")
	b.fill("name", "a new one")
	b.fill("ttl", "24h")
	b.press("Create")
	b.shows("dialog[open] .secret code", "rl-")
	secret := eval[string](b, `document.querySelector('dialog[open] .secret code').textContent`)
	b.press("I have it")
	b.until(`document.querySelector('dialog') === null`)
	b.shows("tbody", "a new one")
	if strings.Contains(eval[string](b, `document.documentElement.outerHTML`), secret) {
		t.Error("the page still has the secret")
	}
	b.press("Rotate a new one")
	b.fill("grace", "")
	b.press("Rotate")
	b.shows("dialog[open] .secret code", "rl-")
	if other := eval[string](b, `document.querySelector('dialog[open] .secret code').textContent`); other == secret {
		t.Error("the rotated key has the same secret")
	}
	b.press("I have it")
	b.press("a new one")
	b.shows("h1", "a new one")
	b.press("Revoke")
	b.press("Revoke")
	b.shows(".toast", "revoked")
	b.shows("main", "there is no such key")
	if n := len(r.get(t, "/v1/keys?limit=1000")["keys"].([]any)); n != 12 {
		t.Errorf("there are %d keys", n)
	}
}

// Tokens of the admin API are made, rotated and revoked like keys, each with a role.
func TestTokens(t *testing.T) {
	r := shared()
	b := open(t, r, "/#/keys")
	b.press("Create a token")
	b.fill("name", "the on-call")
	b.fill("role", "operator")
	b.fill("project", "acme")
	b.fill("ttl", "24h")
	b.press("Create")
	b.shows("dialog[open]", "With the role operator. For project acme.")
	secret := eval[string](b, `document.querySelector('dialog[open] .secret code').textContent`)
	b.press("I have it")
	b.shows("tbody", "the on-call")
	cells := `[...[...document.querySelectorAll('tbody tr')].find((each) => each.textContent.includes('the on-call')).cells].map((each) => each.textContent)`
	if got := eval[[]string](b, cells); len(got) < 5 || got[1] != "operator" || got[2] != "acme" || got[3] == "" || got[4] == "" {
		t.Errorf("the row of the token is %q", got)
	}
	b.press("Rotate the on-call")
	b.press("Rotate")
	b.shows("dialog[open] .secret code", "rl-")
	if other := eval[string](b, `document.querySelector('dialog[open] .secret code').textContent`); other == secret {
		t.Error("the rotated token has the same secret")
	}
	b.press("I have it")
	b.shows(".toast", "Token the on-call is ready")
	named := func() (found map[string]any) {
		for _, each := range r.get(t, "/v1/tokens")["tokens"].([]any) {
			if token := each.(map[string]any); token["name"] == "the on-call" {
				found = token
			}
		}
		return found
	}
	if made := named(); made["role"] != "operator" || made["project"] != "acme" || made["expires"] == nil {
		t.Errorf("the token is %v", made)
	}
	b.press("Revoke the on-call")
	b.shows("dialog[open]", "Programs and browsers that use it get a 401")
	b.press("Revoke")
	b.shows(".toast", "Token the on-call is revoked")
	if left := named(); left != nil {
		t.Errorf("there is still %v", left)
	}
}

// The page Usage groups as it is asked to, those first that cost most, and the file that it offers has the same rows.
func TestUsage(t *testing.T) {
	r := start(t, usual, "listen: 127.0.0.1:0")
	for _, project := range []string{"search", "search", "idle", "small", "small", "small"} {
		r.call(t, project, "gpt-large")
	}
	testkit.Eventually(t, "all calls are recorded", func() bool {
		total := r.get(t, "/v1/usage")["total"].(map[string]any)
		return total["requests"] == 5. && total["denied"] == 1.
	})
	b := open(t, r, "/#/usage")
	rows := func() []string {
		return eval[[]string](b, `[...document.querySelectorAll('table tr')].map((row) => [...row.cells].map((each) => each.textContent).join(' | '))`)
	}
	b.shows("tfoot", "Total")
	got := rows()
	if len(got) != 5 || got[0] != "Project | Requests | Input | Cached | Output | Dollars | Denied | Waited" || !strings.HasPrefix(got[1], "small | 2 | ") || !strings.HasSuffix(got[1], " | 1 | 0") || !strings.HasPrefix(got[2], "search | 2 | ") || !strings.HasPrefix(got[3], "idle | 1 | ") || !strings.HasPrefix(got[4], "Total | 5 | ") {
		t.Errorf("by project: %q", got)
	}
	total := r.get(t, "/v1/usage")["total"].(map[string]any)
	if want := fmt.Sprintf("Total | 5 | %v | %v | %v | $", total["input_tokens"], total["cached_tokens"], total["output_tokens"]); !strings.HasPrefix(got[4], want) {
		t.Errorf("the total is %q: want %q", got[4], want)
	}
	b.press("Project")
	b.press("Day")
	b.press("Model")
	b.fill("project", "search")
	b.shows("tfoot", "Total2")
	if got := rows(); !strings.HasPrefix(got[0], "Day | Model | Requests") || !regexp.MustCompile(`^\d{4}-\d\d-\d\d \| openai/gpt-large \| [12] \| `).MatchString(got[1]) {
		t.Errorf("by day and model: %q", got)
	}
	b.press("Hour")
	b.until(`document.querySelector('th').textContent === 'Hour' && document.querySelector('tfoot') !== null`)
	file := eval[string](b, `fetch([...document.querySelectorAll('a')].find((each) => each.download === 'usage.csv').href).then((answer) => answer.text())`)
	if lines := strings.Split(file, "\n"); !strings.HasPrefix(lines[0], "hour,model,requests") || !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:00Z,openai/gpt-large,[12],`).MatchString(lines[1]) {
		t.Errorf("the file has %q", lines)
	}
	b.press("Model")
	b.press("Project")
	b.press("search")
	b.shows("h1", "search")
}

// A fault of a change is shown in its dialog, which stays open.
func TestFaultOfAChange(t *testing.T) {
	b := open(t, shared(), "/#/keys", "400 (Bad Request)")
	b.press("Create a key")
	b.fill("project", "no spaces please")
	b.press("Create")
	b.until(`document.querySelector('dialog[open] .fault').textContent.length > 10`)
	b.press("Cancel")
	b.until(`document.querySelector('dialog') === null`)
}

func TestExplain(t *testing.T) {
	r := shared()
	r.call(t, "small", "gpt-large")
	r.call(t, "small", "gpt-large")
	r.call(t, "small", "gpt-large")
	b := open(t, r, "/#/explain", "404 (Not Found)")
	b.shows("tbody", "small")
	eval[any](b, `document.querySelector('tbody a.code').click()`)
	b.shows(".sentence", "small")
	b.shows(".advice", "requests")
	b.shows("table", "requests a minute")
	b.fill("model", "gpt-large")
	b.fill("project", "small")
	b.press("Would it pass?")
	b.shows("main", "denied")
	b.fill("id", "none-such")
	b.press("Explain")
	b.shows(".fault", "none-such")
}

// A change says for how long it holds and why; both are in the audit log, and the project has them.
func TestChangesHaveATerm(t *testing.T) {
	r := start(t, usual, "listen: 127.0.0.1:0")
	b := open(t, r, "/#/project/search")
	b.press("Set limits")
	b.until(`document.querySelector('dialog [name=until]') !== null`)
	eval[any](b, `(() => {
		const set = (name, value) => { const input = document.querySelector('dialog [name=' + name + ']'); input.value = value; input.dispatchEvent(new Event('input', {bubbles: true})); };
		set('requests_per_minute', '500'); set('until', 'forever'); set('reason', 'a larger customer');
		return null;
	})()`)
	b.until(`!document.querySelector('dialog button.main').disabled`)
	b.press("Apply")
	b.shows("body", "The limits of search are set.")
	term, _ := r.get(t, "/v1/projects/search")["term"].(map[string]any)
	testkit.Equal(t, "the term", map[string]any{"until": "forever", "reason": "a larger customer"}, term)
	b.turn("/#/audit")
	b.shows("tbody tr:first-child", "because: a larger customer")
}
