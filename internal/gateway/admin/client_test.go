package admin

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

func TestClient(t *testing.T) {
	r := newRig(t, withToken(t))
	c := &Client{Base: r.url + "/", Token: secretToken, HTTP: r.client}
	ctx := t.Context()
	if s, err := c.State(ctx); err != nil || s.Version != "test" || len(s.Models) == 0 || len(s.Projects) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	created, err := c.CreateKey(ctx, NewKey{Project: "search", Name: "indexer", TTL: Seconds(time.Hour)})
	if err != nil || created.Project != "search" || created.Name != "indexer" || created.Expires.IsZero() {
		t.Fatalf("%+v, %v", created, err)
	}
	rotated, err := c.Rotate(ctx, VirtualKey, created.ID, time.Minute)
	if err != nil || rotated.Secret == created.Secret {
		t.Fatalf("%+v, %v", rotated, err)
	}
	if _, ok := r.gateway.Keys().Find(created.Secret); !ok {
		t.Error("there is no grace")
	}
	list, err := c.Keys(ctx)
	if err != nil || rotated.PreviousUntil.IsZero() {
		t.Errorf("the old key is valid until %v; error %v", rotated.PreviousUntil, err)
	}
	testkit.Equal(t, "the keys", []keys.Key{rotated.Key}, list)
	if err := c.Revoke(ctx, VirtualKey, created.ID); err != nil {
		t.Error(err)
	}
}

// The client returns all keys, of more than one page.
func TestClientReadsAllPages(t *testing.T) {
	r := newRig(t, usual)
	for range 1001 {
		if _, _, err := r.gateway.Keys().Create(t.Context(), "search", "", 0); err != nil {
			t.Fatal(err)
		}
	}
	plain := &http.Client{Transport: r.client.Transport.(*holding).RoundTripper} // checking so many answers by the document takes long
	list, err := (&Client{Base: r.url, HTTP: plain}).Keys(t.Context())
	if err != nil || len(list) != 1001 {
		t.Errorf("%d keys, %v", len(list), err)
	}
}

func TestClientErrors(t *testing.T) {
	r := newRig(t, withToken(t))
	c := &Client{Base: r.url, Token: "wrong", HTTP: r.client}
	_, err := c.State(t.Context())
	var p *Problem
	if !errors.As(err, &p) || p.Status != http.StatusUnauthorized || !strings.Contains(err.Error(), "this token is not valid") {
		t.Errorf("a wrong token: %v", err)
	}
	c.Token = ""
	if _, err = c.State(t.Context()); err == nil || !strings.Contains(err.Error(), "needs its token") {
		t.Errorf("no token: %v", err)
	}
	c.Token = secretToken
	err = c.Revoke(t.Context(), VirtualKey, "../state")
	if !errors.As(err, &p) || p.Status != http.StatusNotFound || !strings.HasPrefix(err.Error(), "ratelimit: there is no such key") {
		t.Errorf("an unknown key: %v", err)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"a page":    func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
		"an error":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) },
		"an object": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); w.Write([]byte("{}")) },
	} {
		server := httptest.NewServer(answer)
		if _, err := (&Client{Base: server.URL, HTTP: server.Client()}).State(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || errors.As(err, new(*Problem)) {
			t.Errorf("%s: %v", name, err)
		}
		server.Close()
	}
	if _, err := (&Client{Base: "127.0.0.1:8081"}).State(t.Context()); err == nil || !strings.Contains(err.Error(), "such as http://127.0.0.1:8081") {
		t.Errorf("an address without a scheme: %v", err)
	}
}

// Callers see from the error that no gateway listens.
func TestClientWithoutGateway(t *testing.T) {
	if _, err := (&Client{Base: "http://127.0.0.1:1"}).State(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
}
