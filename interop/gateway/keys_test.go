package gateway_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every SDK sends the virtual key in its own way, and the provider gets its key in the
// provider's: alone.
func TestKeys(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample))
		for _, call := range slices.Concat(every, s.calls) {
			if a := s.do(t, r.through(s, call)); a.Error != nil {
				t.Errorf("%s: %+v", call, a.Error)
			}
		}
		for _, got := range r.provider.received() {
			got.carries(t, s.provider)
		}
		for _, rec := range r.Recent("", 0, 100) {
			if rec.Project != project || !strings.HasPrefix(r.key, "rl-"+rec.Key+"-") {
				t.Errorf("%+v", rec)
			}
		}
	})
}

// carries expects that a request has the key of a provider where that wants it, and
// nothing else that is a key.
func (r *received) carries(t *testing.T, provider string) {
	t.Helper()
	want := map[string]string{}
	if at, ok := keyed[provider]; ok {
		want[at.field] = at.prefix + secretOf(provider)
	}
	if diff := cmp.Diff(want, r.keys()); diff != "" {
		t.Errorf("%s %s: wanted (-) and got (+):\n%s", r.Method, r.URL, diff)
	}
}

// keys returns what stands where keys do.
func (r *received) keys() map[string]string {
	found := map[string]string{}
	for _, field := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "Cookie"} {
		if values := r.Header.Values(field); values != nil {
			found[field] = strings.Join(values, ", ")
		}
	}
	if values := r.URL.Query()["key"]; values != nil {
		found["?key="] = strings.Join(values, ", ")
	}
	return found
}

// ownKeys is a gateway without virtual keys.
const ownKeys = `
keys: off
state: memory
providers: {openai: {base_url: MOCK}, anthropic: {base_url: MOCK}, gemini: {base_url: MOCK}}
`

// Where there are no virtual keys the client's own passes as it is.
func TestOwnKey(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, ownKeys)
		for _, call := range slices.Concat(every, s.calls) {
			past, k := r.past(s, call), r.through(s, call)
			k.Key = past.Key
			compare(t, call, "", s.do(t, past).cleaned(past.Base), s.do(t, k).cleaned(k.Base))
			r.settled(t)
		}
		without := r.without.received()
		for i, got := range r.provider.received() {
			if diff := cmp.Diff(without[i].keys(), got.keys()); diff != "" {
				t.Errorf("%s %s: without (-) and with (+) the gateway:\n%s", got.Method, got.URL, diff)
			}
		}
	})
}

// A key may stand in the query, as Gemini's examples have it, and in any of the headers
// whoever the provider is.
func TestKeyElsewhere(t *testing.T) {
	r := newRig(t, with(ample))
	const path = "/gemini/v1beta/models/gemini-test:generateContent"
	for _, c := range []struct{ query, field, prefix string }{
		{query: "?key="},
		{query: "?alt=json&key="},
		{field: "Authorization", prefix: "Bearer "},
		{field: "Authorization", prefix: "bearer "},
		{field: "X-Api-Key"},
		{field: "X-Goog-Api-Key"},
		{field: "Api-Key"},
	} {
		address := r.url + path
		if c.query != "" {
			address += c.query + r.key
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(`{"contents":[{"parts":[{"text":"Hello"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if c.field != "" {
			request.Header.Set(c.field, c.prefix+r.key)
		}
		if status, text := send(t, request); status != 200 {
			t.Errorf("%+v: %d %s", c, status, text)
		}
	}
	hidden := "?%6bey=" + r.key + "&alt=json"
	if status, text := post(t, r.url+path+hidden, `{"contents":[]}`, r.key); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	for _, got := range r.provider.received() {
		got.carries(t, "gemini")
	}
	r.settled(t)
}

// send sends a request, and returns the answer.
func send(t *testing.T, request *http.Request) (status int, text string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
