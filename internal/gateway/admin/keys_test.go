package admin

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

func TestKeys(t *testing.T) {
	r := newRig(t, usual)
	created := r.want(t, 201, "POST", "/v1/keys", `{"project": "search", "name": "indexer", "ttl": "1h"}`)
	first := as[IssuedKey](t, created)
	if first.Project != "search" || first.Name != "indexer" || time.Until(first.Expires).Round(time.Minute) != time.Hour {
		t.Errorf("%+v", first.Key)
	}
	if created.header.Get("Cache-Control") != "no-store" {
		t.Error("the answer may be stored")
	}
	k, _ := r.gateway.Keys().Find(first.Secret)
	testkit.Equal(t, "the key that is valid", first.Key, k)

	second := as[IssuedKey](t, r.want(t, 200, "POST", "/v1/keys/"+first.ID+"/rotate", `{"grace": 3600}`))
	if second.ID != first.ID || second.Secret == first.Secret {
		t.Errorf("%+v", second.Key)
	}
	for _, secret := range []string{first.Secret, second.Secret} {
		if _, ok := r.gateway.Keys().Find(secret); !ok {
			t.Error("one of the two is not valid within the grace")
		}
	}
	again := as[IssuedKey](t, r.want(t, 200, "POST", "/v1/keys/"+first.ID+"/rotate", `{"grace": 60}`))
	if _, ok := r.gateway.Keys().Find(first.Secret); !ok || again.PreviousUntil != second.PreviousUntil || time.Until(again.PreviousUntil).Round(time.Minute) != time.Hour {
		t.Errorf("a second rotation ends the grace of the first: %t, %+v", ok, again.Key)
	}
	testkit.Equal(t, "the keys", KeyList{Keys: []keys.Key{again.Key}}, as[KeyList](t, r.get(t, "/v1/keys")))
	third := as[IssuedKey](t, r.want(t, 200, "POST", "/v1/keys/"+first.ID+"/rotate", `{}`))
	for _, secret := range []string{first.Secret, second.Secret, again.Secret} {
		if _, ok := r.gateway.Keys().Find(secret); ok {
			t.Error("an old one is valid without a grace")
		}
	}

	r.want(t, 200, "PATCH", "/v1/keys/"+first.ID, `{"paused": true}`)
	third = as[IssuedKey](t, r.want(t, 200, "POST", "/v1/keys/"+first.ID+"/rotate", `{}`))
	if !third.Paused {
		t.Error("the answer to a rotation says that a paused key is not paused")
	}
	r.want(t, 204, "DELETE", "/v1/keys/"+first.ID, "")
	if _, ok := r.gateway.Keys().Find(third.Secret); ok {
		t.Error("it is valid although it was revoked")
	}
	r.want(t, 404, "DELETE", "/v1/keys/"+first.ID, "")
}

// A key is in no other answer, log or file than the answer that issues it.
func TestKeysAreShownOnce(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, strings.Replace(usual, "state: memory", "state: "+dir+"/state.db", 1))
	created := as[IssuedKey](t, r.want(t, 201, "POST", "/v1/keys", `{"project": "search"}`))
	again := as[IssuedKey](t, r.want(t, 200, "POST", "/v1/keys/"+created.ID+"/rotate", `{"grace": "1h"}`))
	texts := map[string]string{"the log": r.logged.String(), "the audit log": readFile(t, dir+"/state.db.audit.jsonl")}
	for _, path := range []string{"/v1/keys", "/v1/audit", "/v1/state", "/v1/config", "/v1/decisions", "/v1/projects", "/metrics"} {
		texts[path] = r.get(t, path).text
	}
	for _, key := range []string{created.Secret, again.Secret} {
		secret := strings.TrimPrefix(key, "rl-"+created.ID+"-")
		for where, text := range texts {
			if strings.Contains(text, secret) {
				t.Errorf("%s has a key: %s", where, text)
			}
		}
	}
	if !strings.Contains(texts["the audit log"], created.ID) {
		t.Error("the audit log does not say which key was created")
	}
}

func TestPagesOfKeys(t *testing.T) {
	r := newRig(t, usual)
	want := []string{}
	for i := range 7 {
		secret, k, err := r.gateway.Keys().Create(t.Context(), fmt.Sprintf("p%d", i%3), "", 0)
		if err != nil || secret == "" {
			t.Fatal(err)
		}
		want = append(want, k.Project+"/"+k.ID)
	}
	var got []string
	for query := "?limit=2"; query != ""; {
		page := as[KeyList](t, r.want(t, 200, "GET", "/v1/keys"+query, ""))
		for _, k := range page.Keys {
			got = append(got, k.Project+"/"+k.ID)
		}
		query = ""
		if page.Next != "" {
			query = "?limit=2&after=" + page.Next
		}
	}
	sorted := cmp.Transformer("sorted", sortedCopy)
	if !cmp.Equal(got, sortedCopy(got)) || !cmp.Equal(want, got, sorted) {
		t.Errorf("%v: want %v", got, want)
	}
	if page := as[KeyList](t, r.want(t, 200, "GET", "/v1/keys?after=zzz", "")); page.Keys == nil || len(page.Keys) != 0 {
		t.Errorf("after the last: %+v", page)
	}
}

// A key has a limit and models, which can be changed; what is left out stays.
func TestTermsOfKeys(t *testing.T) {
	r := newRig(t, usual)
	created := as[IssuedKey](t, r.want(t, 201, "POST", "/v1/keys", `{"project": "acme/search", "limit": {"dollars_per_day": 5}, "models": ["gpt-6-luna*"]}`))
	path := "/v1/keys/" + created.ID
	changed := as[keys.Key](t, r.want(t, 200, "PATCH", path, `{"limit": {"requests_per_minute": 3, "dollars_per_day": null}}`))
	if changed.Limit != (project.Limit{RequestsPerMinute: 3}) || !cmp.Equal(changed.Models, created.Models) {
		t.Errorf("%+v", changed)
	}
	changed = as[keys.Key](t, r.want(t, 200, "PATCH", path, `{"models": []}`))
	if list := as[KeyList](t, r.get(t, "/v1/keys")).Keys; len(list) != 1 || list[0].Models != nil || list[0].Limit != changed.Limit || changed.Limit.RequestsPerMinute != 3 {
		t.Errorf("%+v", list)
	}
	for body, want := range map[string]string{
		`{"limit": {"dollars_per_day": -1}}`:     "number of dollars",
		`{"limit": {"weight": 2}}`:               "only projects have these",
		`{"limit": {"requests_per_minute": -1}}`: "RequestsPerMinute is -1",
		`{"models": [""]}`:                       "must be a name or a pattern",
		`{"project": "other"}`:                   "project",
	} {
		if a := r.want(t, 400, "PATCH", path, body); !strings.Contains(a.text, want) {
			t.Errorf("%s: %s", body, a.text)
		}
	}
	r.want(t, 404, "PATCH", "/v1/keys/abcdefgh22", `{}`)
}

// The list of keys says when each was last used, at whichever gateway.
func TestKeysSayWhenTheyWereLastUsed(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	all, one := newFleet(t, 2, strings.NewReplacer("state: memory", "state: memory\nkeys: required", "base_url: MOCK", "base_url: MOCK\n    key: {env: TEST_KEY}").Replace(usual))
	used := as[IssuedKey](t, one.want(t, 201, "POST", "/v1/keys", `{"project": "search"}`))
	idle := as[IssuedKey](t, one.want(t, 201, "POST", "/v1/keys", `{"project": "search"}`))
	testkit.Eventually(t, "both gateways know the key", func() bool {
		_, first := all[0].gateway.Keys().Find(used.Secret)
		_, second := all[1].gateway.Keys().Find(used.Secret)
		return first && second
	})
	req, err := http.NewRequestWithContext(t.Context(), "POST", all[1].clients+"/openai/v1/chat/completions",
		strings.NewReader(`{"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+used.Secret)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	all[1].settle(t)
	for range 2 {
		for _, k := range as[KeyList](t, one.want(t, 200, "GET", "/v1/keys", "")).Keys {
			if lately := time.Since(k.LastUsed) < 3*time.Minute; lately != (k.ID == used.ID) || k.ID == idle.ID && !k.LastUsed.IsZero() {
				t.Errorf("%s was last used at %v", k.ID, k.LastUsed)
			}
		}
	}
}

// What is older than the figures comes from the books.
func TestLastUseInTheBooks(t *testing.T) {
	r := newRig(t, strings.Replace(usual, "state: memory", "state: "+filepath.Join(t.TempDir(), "state.db"), 1))
	keeper := hidden.Of[books.Keeper](r.gateway.Models().Store())
	if err := keeper.Book(t.Context(), []books.Entry{{Owner: books.Owner{Project: "search", Key: "old"}, Amounts: books.Amounts{books.Requests: 1}}}); err != nil {
		t.Fatal(err)
	}
	if got := r.uses.last(t.Context())["old"]; time.Since(got) > 2*time.Hour {
		t.Errorf("it was last used at %v: want the beginning of this hour", got)
	}
}
