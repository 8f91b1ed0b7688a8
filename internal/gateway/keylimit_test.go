package gateway

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/project"
)

// A key has a limit and models of its own, beside those of its project, from the first call on and
// when they change.
func TestKeysWithLimits(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	r := newRig(t, withKeys+"defaults: {max_wait: 0s}\n", mockprovider.Config{})
	limited, key, err := r.Keys().CreateKey(t.Context(), keys.Key{Project: "search", Limit: project.Limit{RequestsPerDay: 2}, Models: []string{"gpt-4o*"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	free, _ := r.newKey(t, "search", "")
	want := func(status int, says, secret, model string) {
		t.Helper()
		if a := r.post(t, chat, strings.Replace(hello, "gpt-4o", model, 1), "Authorization", "Bearer "+secret); a.status != status || !strings.Contains(a.body, says) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	want(403, `key \"`+key.ID+`\" may not call`, limited, "gpt-5")
	want(200, "", limited, "gpt-4o")
	want(200, "", limited, "gpt-4o-mini")
	want(429, `key \"`+key.ID+`\" has 0 of its 2 requests`, limited, "gpt-4o")
	want(200, "", free, "gpt-5")
	if _, err := r.Keys().Change(t.Context(), key.ID, func(k *keys.Key) { k.Limit.RequestsPerDay, k.Models = 3, nil }); err != nil {
		t.Fatal(err)
	}
	want(200, "", limited, "gpt-5")
	want(429, "", limited, "gpt-5")
	if _, err := r.Keys().Change(t.Context(), key.ID, func(k *keys.Key) { k.Limit = project.Limit{} }); err != nil {
		t.Fatal(err)
	}
	want(200, "", limited, "gpt-5")
}
