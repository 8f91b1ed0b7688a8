package keys

import (
	"testing"
	"testing/synctest"
	"time"
)

// A key that was found says when it ends, whatever has become of the keys since.
func TestEnded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, r *Ring, id string)
		ended  bool
		left   time.Duration // until the key ends; 0: it never does
	}{
		"nothing has changed":       {func(*testing.T, *Ring, string) {}, false, time.Hour},
		"another key was made":      {func(t *testing.T, r *Ring, _ string) { create(t, r, "other", "", 0) }, false, time.Hour},
		"the secret has grace":      {func(t *testing.T, r *Ring, id string) { rotate(t, r, id, time.Minute) }, false, time.Minute},
		"the grace is over":         {func(t *testing.T, r *Ring, id string) { rotate(t, r, id, time.Minute); time.Sleep(time.Minute) }, true, 0},
		"the secret was replaced":   {func(t *testing.T, r *Ring, id string) { rotate(t, r, id, 0) }, true, 0},
		"the key was revoked":       {func(t *testing.T, r *Ring, id string) { revoke(t, r, id) }, true, 0},
		"the key has expired":       {func(*testing.T, *Ring, string) { time.Sleep(time.Hour) }, true, 0},
		"a moment before the end":   {func(*testing.T, *Ring, string) { time.Sleep(time.Hour - time.Second) }, false, time.Second},
		"revoked, another was made": {func(t *testing.T, r *Ring, id string) { revoke(t, r, id); create(t, r, "p", "", 0) }, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := ring(t, nil)
				secret, k := create(t, r, "p", "", time.Hour)
				found, sent, ok := r.Use(secret)
				if !ok || found.ID != k.ID {
					t.Fatalf("found %+v, %t", found, ok)
				}
				c.change(t, r, k.ID)
				if got := r.Ended(sent); got != c.ended {
					t.Errorf("ended is %t, want %t", got, c.ended)
				}
				if left := time.Until(r.End(sent)); !c.ended && left != c.left {
					t.Errorf("it ends in %v, want %v", left, c.left)
				}
			})
		})
	}
}

// A key without an end has none.
func TestEndOfAKeyThatStays(t *testing.T) {
	r := ring(t, nil)
	secret, _ := create(t, r, "p", "", 0)
	_, sent, _ := r.Use(secret)
	if end := r.End(sent); !end.IsZero() || r.Ended(sent) {
		t.Error(end)
	}
	if _, sent, ok := r.Use("rl-nonsense"); ok || sent != (Sent{}) {
		t.Error(sent)
	}
}
