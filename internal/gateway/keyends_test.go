package gateway

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/project"
)

// Calls that wait for the limit of their key are refused when the key is revoked or expires, or when their
// secret ends, on every gateway of the store. None of them is sent, although the limit has gone with the key.
func TestTheEndOfAKeyEndsWaits(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	ends := map[string]func(t *testing.T, by *Gateway, id string){
		"revoked": func(t *testing.T, by *Gateway, id string) {
			if err := by.Keys().Revoke(t.Context(), id); err != nil {
				t.Error(err)
			}
		},
		"expired": func(*testing.T, *Gateway, string) { time.Sleep(30 * time.Minute) },
		"rotated": func(t *testing.T, by *Gateway, id string) {
			if _, _, err := by.Keys().Rotate(t.Context(), id, 0); err != nil {
				t.Error(err)
			}
		},
		"rotated with grace": func(t *testing.T, by *Gateway, id string) {
			if _, _, err := by.Keys().Rotate(t.Context(), id, 10*time.Minute); err != nil {
				t.Error(err)
			}
			time.Sleep(11 * time.Minute)
		},
	}
	for name, end := range ends {
		for _, state := range []string{"memory", "sqlite"} {
			t.Run(name+"/"+state, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testEndOfKey(t, state, end) })
			})
		}
	}
}

func testEndOfKey(t *testing.T, state string, end func(t *testing.T, by *Gateway, id string)) {
	open := 1
	if state == "sqlite" {
		state, open = filepath.Join(t.TempDir(), "state.db"), 2
	}
	yaml := fmt.Sprintf("%sdefaults: {max_wait: 24h}\nstate: %s\n", withKeys, state)
	var gateways []*Gateway
	sent := new(door)
	for range open {
		g, err := New(gatewaytest.Config(t, yaml, "http://127.0.0.1:1"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		for _, to := range g.setup.Load().upstreams["openai"].deployments {
			to.transport = sent
		}
		gateways = append(gateways, g)
	}
	serving, changing := gateways[0], gateways[open-1]
	secret, key, err := changing.Keys().CreateKey(t.Context(), keys.Key{Project: "acme", Limit: project.Limit{RequestsPerHour: 1}}, 20*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second) // until the other gateway knows the key
	call := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "http://127.0.0.1"+chat, strings.NewReader(hello))
		r.Header.Set("Authorization", "Bearer "+secret)
		w := httptest.NewRecorder()
		serving.ServeHTTP(w, r)
		return w
	}
	if w := call(); w.Code != 200 {
		t.Fatal(w.Code, w.Body)
	}
	began := time.Now()
	var waiting sync.WaitGroup
	for range 12 {
		waiting.Go(func() {
			w := call()
			if w.Code != 401 || !strings.Contains(w.Body.String(), `"error"`) || !strings.Contains(w.Body.String(), "key") || time.Since(began) > time.Hour {
				t.Errorf("after %v: %d %s", time.Since(began), w.Code, w.Body)
			}
		})
	}
	synctest.Wait()
	end(t, changing, key.ID)
	waiting.Wait()
	if len(sent.arrivals) != 1 {
		t.Errorf("%d calls were sent: want 1", len(sent.arrivals))
	}
	for _, rec := range serving.Recent("", 0, maxRecent)[1:] {
		if rec.Outcome != Refused || rec.Key != key.ID {
			t.Errorf("%+v", rec)
		}
	}
}
