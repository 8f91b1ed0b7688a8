package gateway

import (
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// Every answer has an id by which it can be found in the access log.
func TestEveryAnswerHasAnID(t *testing.T) {
	r := newRig(t, oneOfEach+"  bedrock: {kind: bedrock, base_url: MOCK}\nprojects: {none: {requests_per_minute: 1, max_wait: 0s}}", mockprovider.Config{})
	r.post(t, chat, hello, "X-Project-ID", "none")
	seen := map[string]bool{}
	for _, c := range []struct {
		path, body string
		status     int
		field      string // the header in which the SDK looks for the provider's id
	}{
		{chat, hello, 200, ""},
		{chat, strings.Replace(hello, "{", `{"stream":true,`, 1), 200, ""},
		{"/openai/v1/models", "", 405, ""},
		{chat, "[", 400, "X-Request-Id"},
		{"/nobody/v1/chat/completions", hello, 404, "X-Request-Id"},
		{messages, "[", 400, "Request-Id"},
		{"/gemini/v1beta/models/gemini-2.5-pro:generateContent", "[", 400, "X-Request-Id"},
		{"/bedrock/model/m/converse", "[", 400, "X-Amzn-Requestid"},
		{"/bedrock/model/m/invoke", "[", 400, "X-Amzn-Requestid"},
	} {
		a := r.post(t, c.path, c.body)
		last := r.last(t)
		id := a.header.Get("X-Gateway-Request-Id")
		if id == "" || id != last.ID || seen[id] {
			t.Errorf("%s: %d has the id %q, and its record %q", c.path, a.status, id, last.ID)
		}
		seen[id] = true
		if c.field != "" && (a.status != c.status || a.header.Get(c.field) != id) {
			t.Errorf("%s: %d %v", c.path, a.status, a.header)
		}
		if c.path == messages && !strings.Contains(a.body, `"request_id":"`+id+`"`) {
			t.Errorf("%s: %s", c.path, a.body)
		}
	}
	denied := r.post(t, chat, hello, "X-Project-ID", "none")
	if last := r.last(t); denied.status != 429 || denied.header.Get("X-Request-Id") != last.ID {
		t.Errorf("a denial: %d %v", denied.status, denied.header)
	}
}

// The provider's id of a request stays. If the provider sends none, the gateway's replaces it.
func TestProvidersIDStays(t *testing.T) {
	for _, c := range []struct{ field, given, want string }{
		{"X-Request-Id", "req_1", "req_1"},
		{"X-Amzn-Requestid", "5a3c", "5a3c"},
		{"X-Request-Id", "", "gw_"},
	} {
		r := newRigBefore(t, oneOfEach, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.given != "" {
				w.Header().Set(c.field, c.given)
			}
			w.Header().Set("X-Gateway-Request-Id", "another gateway's")
			w.Write([]byte("{}"))
		}))
		a := r.post(t, chat, hello)
		last := r.last(t)
		if !strings.HasPrefix(a.header.Get(c.field), c.want) || a.header.Get("X-Gateway-Request-Id") != last.ID || last.RequestID != c.given {
			t.Errorf("the provider says %q: %v, recorded as %+v", c.given, a.header, last)
		}
	}
}
