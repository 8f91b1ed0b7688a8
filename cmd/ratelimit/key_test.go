package main

import (
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

func TestKeyLines(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	plain := keys.Key{ID: "aaaaaaaaaa", Project: "search", Name: "indexer", Created: now.Add(-time.Hour)}
	used, expired, rotated := plain, plain, plain
	used.ID, used.LastUsed = "eeeeeeeeee", now.Add(-time.Hour)
	expired.ID, expired.Expires, expired.LastUsed = "bbbbbbbbbb", now, time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	rotated.ID, rotated.Expires, rotated.PreviousUntil = "cccccccccc", now.Add(time.Second), now.Add(time.Minute)
	limited := plain
	limited.ID, limited.Limit, limited.Models = "dddddddddd", project.Limit{RequestsPerMinute: 5, DollarsPerDay: 5 * price.Dollar / 2}, []string{"a*", "b"}
	for name, c := range map[string]struct {
		keys []keys.Key
		want string
	}{
		"none": {nil, `
there are no keys`},
		"plain": {[]keys.Key{plain}, `
project  id          name     expires  created
search   aaaaaaaaaa  indexer  never    2026-11-15`},
		"all": {[]keys.Key{plain, used, expired, rotated}, `
project  id          name     last used       expires     created
search   aaaaaaaaaa  indexer  -               never       2026-11-15
search   eeeeeeeeee  indexer  2026-11-15 11h  never       2026-11-15
search   bbbbbbbbbb  indexer  2026-11-02      2026-11-15  2026-11-15
    expired
search   cccccccccc  indexer  -               2026-11-15  2026-11-15
    the old key is valid until 2026-11-15T12:01:00Z`},
		"limited": {[]keys.Key{limited}, `
project  id          name     expires  created
search   dddddddddd  indexer  never    2026-11-15
    limits: 5 requests/min, $2.50/day
    models: a*, b`},
	} {
		if got := shown(keyLines(c.keys, now, 80)); got != c.want {
			t.Errorf("%s:%s\nwant:%s", name, got, c.want)
		}
	}
}

// After a rotation with a grace period, the program prints until when the old key is valid,
// however often the key is rotated.
func TestKeyRotateTells(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "keys: required\n"))
	secret := strings.TrimSpace(run(t, "key", "create", "search").stdout)
	id := strings.Split(secret, "-")[1]
	for range 2 {
		got := run(t, "key", "rotate", id, "--grace", "24h")
		if got.code != exitFine || !strings.HasPrefix(got.stderr, "the old key is valid until 2") {
			t.Errorf("%+v", got)
		}
		for _, key := range []string{secret, strings.TrimSpace(got.stdout)} {
			if status := s.ask(t, "", key); status != 200 {
				t.Errorf("a call with a key in its grace, or the new one: %d", status)
			}
		}
	}
	if got := run(t, "key", "list"); !strings.Contains(got.stdout, "the old key is valid until") {
		t.Errorf("%+v", got)
	}
	if got := run(t, "key", "rotate", id); got.code != exitFine || strings.Contains(got.stderr, "the old key") {
		t.Errorf("%+v", got)
	}
}
