package keys

import (
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

func same(a, b Key) bool { return reflect.DeepEqual(a, b) }

func contains(all []Key, k Key) bool {
	return slices.ContainsFunc(all, func(each Key) bool { return same(each, k) })
}

// followed returns the limits that a ring reports.
func followed(r *Ring) func() map[string]project.Limit {
	var mu sync.Mutex
	all := map[string]project.Limit{}
	r.FollowLimits(func(changed map[string]*project.Limit) error {
		mu.Lock()
		defer mu.Unlock()
		for id, limit := range changed {
			delete(all, id)
			if limit != nil {
				all[id] = *limit
			}
		}
		return nil
	})
	return func() map[string]project.Limit {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(all)
	}
}

// The limit and the models of a key can be set and changed, and other rings on the store follow.
// Its secrets stay valid, those in their grace period too.
func TestTerms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.db")
	one, other := ring(t, hidden.Of[settings.Keeper](openSQLite(t, path))), ring(t, hidden.Of[settings.Keeper](openSQLite(t, path)))
	limits := followed(one)
	five := project.Limit{DollarsPerDay: 5 * price.Dollar}
	first, k, err := one.CreateKey(bg, Key{ID: "ignored", Project: "acme/search", Limit: five, Models: []string{"gpt-6-luna*"}}, 0)
	if err != nil || !maps.Equal(limits(), map[string]project.Limit{k.ID: five}) {
		t.Fatalf("%v, %v", limits(), err)
	}
	second, rotated, err := one.Rotate(bg, k.ID, time.Hour)
	if err != nil || rotated.Limit != five || !slices.Equal(rotated.Models, k.Models) {
		t.Fatalf("%+v, %v", rotated, err)
	}
	if err := other.Load(bg); err != nil {
		t.Fatal(err)
	}
	ten := project.Limit{DollarsPerDay: 10 * price.Dollar, RequestsPerMinute: 5}
	changed, err := other.Change(bg, k.ID, func(k *Key) { k.Limit, k.Project, k.ID = ten, "another", "x" })
	if err != nil || changed.Limit != ten || changed.Project != "acme/search" || changed.ID != k.ID || changed.PreviousUntil.IsZero() {
		t.Fatalf("%+v, %v", changed, err)
	}
	if err := one.Load(bg); err != nil {
		t.Fatal(err)
	}
	changed.PreviousUntil = rotated.Expires
	for _, r := range []*Ring{one, other} {
		for _, secret := range []string{first, second} {
			wantKey(t, r, secret, true, changed)
		}
	}
	if !maps.Equal(limits(), map[string]project.Limit{k.ID: ten}) || !maps.Equal(followed(other)(), limits()) {
		t.Errorf("the limits are %v", limits())
	}
	if _, err := one.Change(bg, k.ID, func(k *Key) { k.Limit, k.Models = project.Limit{}, nil }); err != nil || len(limits()) > 0 {
		t.Errorf("without a limit: %v, %v", limits(), err)
	}
	if _, err := one.Change(bg, k.ID, func(k *Key) { k.Limit = five }); err != nil || len(limits()) != 1 {
		t.Errorf("with one again: %v, %v", limits(), err)
	}
	if err := one.Revoke(bg, k.ID); err != nil || len(limits()) > 0 {
		t.Errorf("revoked: %v, %v", limits(), err)
	}
	for _, secret := range []string{first, second} {
		wantKey(t, one, secret, false, Key{})
	}
}

// Two rings that change a key at the same time do so one after another.
func TestChangesAtTheSameTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.db")
	one, other := ring(t, hidden.Of[settings.Keeper](openSQLite(t, path))), ring(t, hidden.Of[settings.Keeper](openSQLite(t, path)))
	_, k, err := one.Create(bg, "p", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	raced := false
	_, err = one.Change(bg, k.ID, func(k *Key) {
		if !raced {
			raced = true
			if _, err := other.Change(bg, k.ID, func(k *Key) { k.Models = []string{"a"} }); err != nil {
				t.Error(err)
			}
		}
		k.Limit.RequestsPerDay = 3
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Load(bg); err != nil {
		t.Fatal(err)
	}
	got := other.List()[0]
	testkit.Equal(t, "the key has both changes", []any{3, []string{"a"}}, []any{got.Limit.RequestsPerDay, got.Models})
}

func TestBadTerms(t *testing.T) {
	r := ring(t, nil)
	_, k, err := r.Create(bg, "p", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for want, bad := range map[string]Key{
		"RequestsPerDay is -1": {Limit: project.Limit{RequestsPerDay: -1}},
		"DollarsPerDay is":     {Limit: project.Limit{DollarsPerDay: -1}},
		"only projects have":   {Limit: project.Limit{Weight: 2}},
		"its model \"\"":       {Models: []string{""}},
		"control characters":   {Models: []string{"a\n"}},
		"it may have 100":      {Models: make([]string, 101)},
	} {
		bad.Project = "p"
		_, _, made := r.CreateKey(bg, bad, 0)
		_, changed := r.Change(bg, k.ID, func(k *Key) { k.Limit, k.Models = bad.Limit, bad.Models })
		for _, err := range []error{made, changed} {
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
	}
	if _, err := r.Change(bg, "abcdefgh22", func(*Key) {}); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if got := r.List(); len(got) != 1 || !same(got[0], k) {
		t.Errorf("%+v", got)
	}
}
