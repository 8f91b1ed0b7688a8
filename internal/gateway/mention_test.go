package gateway

import (
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// A paused model stops requests that name it where the gateway does not look otherwise: in requests that
// are no calls in a format that it reads, and among models to fall back to.
func TestPausedModelThatIsMentioned(t *testing.T) {
	sent := ""
	r := newRigBefore(t, "providers: {openai: {base_url: MOCK, models: {paused: {max_rpm: 100}, '*': {max_rpm: 100}}}}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent += r.URL.Path + " "
		w.Write([]byte("{}"))
	}))
	if err := r.Controls().SetModel(t.Context(), "paused", control.Model{Paused: true}); err != nil {
		t.Fatal(err)
	}
	many := `"` + strings.Repeat(`x","`, 1) + strings.Join(numbered(150), `","`) + `"`
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/openai/v1/whatever", `{"model":"paused","prompt":"a cat"}`, 429, `has paused model \"paused\"`},
		{"/openai/v1/whatever", `{"prompt":"a cat","model":"paused"}`, 429, "has paused model"},
		{"/openai/v1/whatever", `{"prompt":"paused","model":"dall-e-3"}`, 200, ""},
		{"/openai/v1/whatever", `{"model":"dall-e-3","model":"paused"}`, 400, `has the field \"model\" twice`},
		{"/openai/v1/whatever", `{"model":"dall-e-3","Model":"paused"}`, 400, "it must be"},
		{"/openai/v1/whatever", `["paused"]`, 400, "must be a JSON object"},
		{"/openai/v1/whatever", `{"model":[` + many + `]}`, 400, "more than 100 models"},
		{"/openai/v1/count_tokens", `{"model":"paused"}`, 200, ""},
		{chat, `{"model":"fine","models":["other","paused"],"messages":[]}`, 429, "has paused model"},
		{chat, `{"model":"fine","fallbacks":[{"model":"paused"}],"messages":[]}`, 429, "has paused model"},
		{chat, `{"model":"fine","models":["other"],"messages":[]}`, 200, ""},
	} {
		sent = ""
		a := r.post(t, c.path, c.body, "X-Project-ID", "acme", "Content-Type", "application/json")
		if a.status != c.status || !strings.Contains(a.body, c.want) || (sent != "") != (c.status == 200) {
			t.Errorf("%s %.80s: %d %s, sent to %q", c.path, c.body, a.status, a.body, sent)
		}
	}
}

func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, strings.Repeat("m", i+1))
	}
	return names
}

// A paused user is stopped in requests whose bodies name it, whatever they are.
func TestPausedUserThatIsMentioned(t *testing.T) {
	r := newRig(t, strings.Replace(batchRig, "openai: {", "openai: {unknown_endpoints: pass, ", 1)+"users: {field: [safety_identifier, metadata.user_id]}\n", mockprovider.Config{})
	r.pause(t, "acme/alice", true)
	line := func(user string) string {
		return strings.Replace(chatLines(1, 10), `"model"`, `"safety_identifier":"`+user+`","model"`, 1)
	}
	inline := func(user string) string {
		return `{"requests":[{"custom_id":"a","params":{"model":"claude-sonnet-4-5","max_tokens":5,"metadata":{"user_id":"` + user + `"},"messages":[]}}]}`
	}
	for user, status := range map[string]int{"alice": 429, "bob": 200} {
		for what, a := range map[string]answer{
			"a file":   r.post(t, "/openai/v1/batches", submission(r.uploadFile(t, chatLines(1, 10)+line(user), "batch")), "X-Project-ID", "acme"),
			"a batch":  r.post(t, "/anthropic/v1/messages/batches", inline(user), "X-Project-ID", "acme"),
			"no call":  r.post(t, "/openai/v1/input_tokens/x", `{"safety_identifier":"`+user+`","model":"m"}`, "X-Project-ID", "other2"),
			"an image": r.post(t, "/openai/v1/whatever", `{"safety_identifier":"`+user+`","model":"m"}`, "X-Project-ID", "acme"),
		} {
			switch denied := strings.Contains(a.body, `has paused project \"acme/alice\"`) && a.status == 429; {
			case what == "no call" && denied:
				t.Errorf("another project's user is paused: %s", a.body)
			case what != "no call" && denied != (status == 429):
				t.Errorf("%s of %s: %d %s", what, user, a.status, a.body)
			}
		}
	}
}

// A paused user is stopped in a batch of Gemini's whose file was uploaded before, also if another gateway has read it. A
// file of which the gateway cannot know it is refused while the user is paused.
func TestPausedUserInAFileOfGemini(t *testing.T) {
	yaml := geminiFileRig + "users: {field: [user]}\n"
	r := newRig(t, yaml, mockprovider.Config{})
	line := func(user string) string {
		return `{"key":"k","request":{"user":"` + user + `","contents":[{"parts":[{"text":"Hello"}]}],"generationConfig":{"maxOutputTokens":10}}}` + "\n"
	}
	many := ""
	for _, name := range numbered(101) {
		many += line(name)
	}
	files := map[string]string{
		"alice": r.uploadToGemini(t, line("bob")+line("alice")), "bob": r.uploadToGemini(t, line("bob")), "many": r.uploadToGemini(t, many), "long": r.uploadToGemini(t, line(strings.Repeat("x", 300))),
	}
	submit := func(name string) answer {
		return r.post(t, geminiFilePath, `{"batch":{"inputConfig":{"fileName":"`+files[name]+`"}}}`, "X-Project-ID", "acme")
	}
	for name := range files {
		if a := submit(name); a.status != 200 {
			t.Errorf("nobody is paused, %s: %d %s", name, a.status, a.body)
		}
	}
	r.pause(t, "acme/alice", true)
	for name, want := range map[string]struct {
		status int
		text   string
	}{"alice": {429, "has paused project"}, "bob": {200, ""}, "many": {400, "upload the calls again"}, "long": {400, "upload the calls again"}} {
		if a := submit(name); a.status != want.status || !strings.Contains(a.body, want.text) {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, want.status)
		}
	}
	if err := r.Reload(gatewaytest.Config(t, strings.Replace(yaml, "[user]", "[safety_identifier]", 1), r.Config().Providers["gemini"].Deployments[""].BaseURL)); err != nil {
		t.Fatal(err)
	}
	if a := submit("bob"); a.status != 400 {
		t.Errorf("users of another field were looked for: %d %s", a.status, a.body)
	}
	files["bob"] = r.uploadToGemini(t, line("bob"))
	if a := submit("bob"); a.status != 200 {
		t.Errorf("the same calls were uploaded again: %d %s", a.status, a.body)
	}
}
