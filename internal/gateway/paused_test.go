package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// pause pauses a project, or resumes it.
func (r *rig) pause(t testing.TB, id string, paused bool) {
	t.Helper()
	if err := r.Controls().SetProject(t.Context(), id, control.Project{Paused: paused}); err != nil {
		t.Fatal(err)
	}
}

// A call of a paused project is refused in the form of its provider, and takes nothing.
func TestPausedProject(t *testing.T) {
	r := newRig(t, oneOfEach+"projects: {acme: {requests_per_day: 10}}\n", mockprovider.Config{})
	calls := []struct{ path, body, code string }{
		{chat, `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}`, `"code":"paused"`},
		{messages, `{"model":"claude-sonnet-4","max_tokens":5,"messages":[{"role":"user","content":"Hello"}]}`, `"type":"rate_limit_error"`},
		{"/gemini/v1beta/models/gemini-2.5-pro:generateContent", `{"contents":[{"parts":[{"text":"Hello"}]}]}`, `"status":"RESOURCE_EXHAUSTED"`},
	}
	r.pause(t, "acme", true)
	for _, project := range []string{"acme", "acme/search", "acme/search/alice"} {
		for _, c := range calls {
			a := r.post(t, c.path, c.body, "X-Project-ID", project)
			if a.status != 429 || !strings.Contains(a.body, c.code) || !strings.Contains(a.body, "has paused project") || !strings.Contains(a.body, "acme") {
				t.Errorf("%s of %s: %d %s", c.path, project, a.status, a.body)
			}
			if a.header.Get("X-Should-Retry") != "false" || a.header.Get("Retry-After") != "" {
				t.Errorf("%v", a.header)
			}
			if last := r.last(t); last.Outcome != Denied || last.Limit != LimitPaused {
				t.Errorf("%+v", last)
			}
		}
		if a := r.do(t, "GET", "/openai/v1/models", "", "X-Project-ID", project); a.status != 429 {
			t.Errorf("a request that calls no model: %d", a.status)
		}
	}
	for _, project := range []string{"acm", "acme2", "other"} {
		if a := r.post(t, calls[0].path, calls[0].body, "X-Project-ID", project); a.status != 200 {
			t.Errorf("%s: %d %s", project, a.status, a.body)
		}
	}
	if a := r.do(t, "GET", "/ratelimit/v1/me", "", "X-Project-ID", "acme"); a.status != 200 {
		t.Errorf("what a client may know of itself: %d %s", a.status, a.body)
	}
	d, err := r.Projects().Peek(t.Context(), "acme")
	if err != nil || d.Windows()[0].Remaining != 10 {
		t.Errorf("%+v, %v: want nothing taken", d.Windows(), err)
	}
	r.pause(t, "acme", false)
	if a := r.post(t, calls[0].path, calls[0].body, "X-Project-ID", "acme/search"); a.status != 200 {
		t.Errorf("after the pause: %d %s", a.status, a.body)
	}
}

// Calls that wait when the pause begins are refused at once, and take nothing. Calls of other projects go
// on to wait.
func TestPauseEndsWaits(t *testing.T) {
	r := newRig(t, oneOfEach+"projects: {acme: {requests_per_hour: 1, max_wait: 2h}, other: {requests_per_hour: 1, max_wait: 2h}}\n", mockprovider.Config{})
	const body = `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}`
	for _, project := range []string{"acme", "other"} {
		if a := r.post(t, chat, body, "X-Project-ID", project); a.status != 200 {
			t.Fatal(a)
		}
	}
	var waiting sync.WaitGroup
	var mu sync.Mutex
	statuses := map[string]int{}
	ask := func(project string) {
		waiting.Go(func() {
			a := r.post(t, chat, body, "X-Project-ID", project)
			mu.Lock()
			defer mu.Unlock()
			statuses[fmt.Sprint(project, " ", a.status, " ", strings.Contains(a.body, `"code":"paused"`))]++
		})
	}
	for range 20 {
		ask("acme/search")
	}
	ask("other")
	testkit.Eventually(t, "all wait", func() bool { return r.Active() == 21 })
	r.pause(t, "acme", true)
	testkit.Eventually(t, "those of acme are refused", func() bool { return r.Active() == 1 })
	r.pause(t, "other", true)
	waiting.Wait()
	testkit.Equal(t, "the answers", map[string]int{"acme/search 429 true": 20, "other 429 true": 1}, statuses)
	if n := len(r.Controls().State().Projects()); n != 2 {
		t.Errorf("%d projects", n)
	}
}

// A key is paused with a code that its holder can read, and no other key is.
func TestPausedKey(t *testing.T) {
	t.Setenv("PAUSED_TEST_KEY", "sk-paused-test")
	r := newRig(t, "keys: required\nproviders: {openai: {base_url: MOCK, key: {env: PAUSED_TEST_KEY}}}\n", mockprovider.Config{})
	ids := map[string]string{}
	for _, name := range []string{"one", "two"} {
		secret, key := r.newKey(t, "acme", name)
		ids[secret] = key.ID
	}
	var paused string
	for _, id := range ids {
		paused = id
	}
	if err := r.Controls().SetKey(t.Context(), paused, control.Key{Paused: true}); err != nil {
		t.Fatal(err)
	}
	for secret, id := range ids {
		a := r.post(t, chat, `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}`, "Authorization", "Bearer "+secret)
		if want := map[bool]int{true: 429, false: 200}[id == paused]; a.status != want || id == paused && !strings.Contains(a.body, "key") {
			t.Errorf("%s: %d %s: want %d", id, a.status, a.body, want)
		}
	}
}

// A paused model refuses calls of it by any of its names, and batches with a call of it. Of several
// deployments, calls go to those that are not paused.
func TestPausedModel(t *testing.T) {
	t.Setenv("PAUSED_TEST_KEY", "sk-paused-test")
	r := newRig(t, oneOfEach+`  azure: {kind: openai, deployments: {eu: {base_url: MOCK, key: {env: PAUSED_TEST_KEY}}, us: {base_url: MOCK, key: {env: PAUSED_TEST_KEY}}}, models: {gpt-4o: {max_rpm: 10}}}
`, mockprovider.Config{})
	set := func(quota string, paused bool) {
		t.Helper()
		if err := r.Controls().SetModel(t.Context(), quota, control.Model{Paused: paused}); err != nil {
			t.Fatal(err)
		}
	}
	call := func(path, model string) answer {
		return r.post(t, path, fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"Hello"}]}`, model))
	}
	set("gpt-4o", true)
	for model, want := range map[string]int{"gpt-4o": 429, "best": 429, "gpt-4o-mini": 200} {
		if a := call(chat, model); a.status != want || want == 429 && !strings.Contains(a.body, `has paused model`) {
			t.Errorf("%s: %d %s", model, a.status, a.body)
		}
	}
	batch := batchLine("a", "gpt-4o")
	file := r.uploadFile(t, batch, "batch")
	submit, _ := json.Marshal(map[string]string{"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"})
	if a := r.post(t, "/openai/v1/batches", string(submit)); a.status != 429 || !strings.Contains(a.body, `"code":"paused"`) {
		t.Errorf("a batch: %d %s", a.status, a.body)
	}
	if a := r.do(t, http.MethodGet, "/openai/v1/models", ""); a.status != 200 {
		t.Errorf("a list of models: %d %s", a.status, a.body)
	}
	set("azure/gpt-4o@eu", true)
	for range 5 {
		if a := call("/azure/v1/chat/completions", "gpt-4o"); a.status != 200 || r.last(t).Deployment != "us" {
			t.Errorf("%d %s at %s", a.status, a.body, r.last(t).Deployment)
		}
	}
	if a := r.post(t, "/azure/v1/batches", string(submit)); a.status != 429 || !strings.Contains(a.body, `"code":"paused"`) {
		t.Errorf("a batch, which goes to the first deployment: %d %s", a.status, a.body)
	}
	set("azure/gpt-4o@us", true)
	if a := call("/azure/v1/chat/completions", "gpt-4o"); a.status != 429 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func batchLine(id, model string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":{"model":%q,"messages":[{"role":"user","content":"Hello"}]}}`, id, model)
}
