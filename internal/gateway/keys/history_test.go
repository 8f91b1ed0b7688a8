package keys

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
)

// naive is a simple model of keys: every secret that was ever given out, and what became of
// its key.
type naive struct {
	keys []*naiveKey
}

type naiveKey struct {
	key     Key
	secrets []*naiveSecret
	revoked bool
}

type naiveSecret struct {
	secret   string
	replaced bool
	until    time.Time // when it stops being valid, if it was replaced
}

func (k *naiveKey) valid(s *naiveSecret, now time.Time) bool {
	if k.revoked || !k.key.Expires.IsZero() && !now.Before(k.key.Expires) {
		return false
	}
	return !s.replaced || now.Before(s.until)
}

// rotate adds a secret. Secrets that were replaced before keep their grace period, unless
// this rotation has none.
func (k *naiveKey) rotate(secret string, until time.Time) {
	for _, s := range k.secrets {
		if !s.replaced || until.IsZero() {
			s.replaced, s.until = true, until
		}
	}
	k.secrets = append(k.secrets, &naiveSecret{secret: secret})
}

// described returns the description of the key, with when its last replaced secret stops
// being valid.
func (k *naiveKey) described(now time.Time) Key {
	key := k.key
	for _, s := range k.secrets {
		if !s.replaced || !k.valid(s, now) {
			continue
		}
		until := s.until
		if !k.key.Expires.IsZero() && k.key.Expires.Before(until) {
			until = k.key.Expires
		}
		if until.After(key.PreviousUntil) {
			key.PreviousUntil = until
		}
	}
	return key
}

func (n *naive) list() []Key {
	all := []Key{}
	for _, k := range n.keys {
		if !k.revoked {
			all = append(all, k.described(time.Now()))
		}
	}
	slices.SortFunc(all, func(a, b Key) int { return strings.Compare(a.Project+" "+a.ID, b.Project+" "+b.ID) })
	return all
}

// step is one change, or a passing of time. Indices of rings and keys wrap around.
type step struct {
	Do        string
	Ring, Key int
	Project   string
	Span      time.Duration // how long a key or a grace period lasts, or how much time passes
}

func steps(most int, spans ...time.Duration) *rapid.Generator[[]step] {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
		return step{
			Do:      rapid.SampledFrom([]string{"create", "rotate", "revoke", "wait"}).Draw(rt, "do"),
			Ring:    rapid.IntRange(0, 1).Draw(rt, "ring"),
			Key:     rapid.IntRange(0, 3).Draw(rt, "key"),
			Project: rapid.SampledFrom([]string{"p", "q"}).Draw(rt, "project"),
			Span:    rapid.SampledFrom(spans).Draw(rt, "span"),
		}
	}), 1, most)
}

// play takes all steps with the rings of one store, and says where they differ from the
// model.
func play(rings []*Ring, all []step) (differs string) {
	model := &naive{}
	for i, s := range all {
		if differs := model.take(rings[s.Ring%len(rings)], s); differs != "" {
			return fmt.Sprintf("step %d, %+v: %s", i, s, differs)
		}
		for _, r := range rings {
			if differs := model.compare(r); differs != "" {
				return fmt.Sprintf("after step %d, %+v: %s", i, s, differs)
			}
		}
	}
	return ""
}

func (n *naive) take(r *Ring, s step) (differs string) {
	now := time.Now()
	if s.Do == "wait" {
		time.Sleep(s.Span)
		return ""
	}
	if s.Do == "create" || len(n.keys) == 0 {
		secret, k, err := r.Create(bg, s.Project, "a name", s.Span)
		if err != nil || k.Project != s.Project || k.Name != "a name" || k.Expires != later(now, s.Span) {
			return fmt.Sprintf("%+v, %v", k, err)
		}
		n.keys = append(n.keys, &naiveKey{key: k, secrets: []*naiveSecret{{secret: secret}}})
		return ""
	}
	k := n.keys[s.Key%len(n.keys)]
	if s.Do == "revoke" {
		if err := r.Revoke(bg, k.key.ID); k.revoked != (err != nil) {
			return fmt.Sprintf("revoked before: %t; %v", k.revoked, err)
		}
		k.revoked = true
		return ""
	}
	alive := k.valid(k.secrets[len(k.secrets)-1], now)
	secret, key, err := r.Rotate(bg, k.key.ID, s.Span)
	if alive != (err == nil) {
		return fmt.Sprintf("alive: %t; %v", alive, err)
	}
	if !alive {
		return ""
	}
	k.rotate(secret, later(now, s.Span))
	return difference(k.described(now), key)
}

// later returns the end of a duration from now on, rounded up to a whole second.
func later(now time.Time, d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return time.Unix(0, (now.UnixNano()+int64(d)+999_999_999)/1_000_000_000*1_000_000_000).UTC()
}

func (n *naive) compare(r *Ring) (differs string) {
	if err := r.Load(bg); err != nil {
		return err.Error()
	}
	now := time.Now()
	for _, k := range n.keys {
		for i, s := range k.secrets {
			found, ok := r.Find(s.secret)
			if want := k.valid(s, now); ok != want || ok && !same(found, k.key) {
				return fmt.Sprintf("secret %d of %d of %+v: %+v, %t; want %t", i, len(k.secrets), k.key, found, ok, want)
			}
		}
	}
	if differs := difference(n.list(), r.List()); differs != "" {
		return differs
	}
	if err := r.Missed(); err != nil {
		return err.Error()
	}
	return ""
}

// After any history of changes, through whichever ring, exactly the keys are valid that the
// model has as valid.
func TestHistories(t *testing.T) {
	file := openSQLite(t, filepath.Join(t.TempDir(), "limits.db"))
	for name, newStore := range map[string]struct {
		most int // how many steps at most
		open func(t *testing.T) []*Ring
	}{
		"memory": {50, func(t *testing.T) []*Ring { return []*Ring{ring(t, nil)} }},
		"SQLite": {10, func(t *testing.T) []*Ring {
			if err := hidden.Of[transaction.Store](file).Update(bg, func(tx transaction.Tx) error { _, err := tx.Exec("DELETE FROM settings"); return err }); err != nil {
				t.Fatal(err)
			}
			return []*Ring{ring(t, &flaky{Keeper: hidden.Of[settings.Keeper](file)}), ring(t, &flaky{Keeper: hidden.Of[settings.Keeper](file)})}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				all := steps(newStore.most, 0, 1, time.Second, 1700*time.Millisecond, 3*time.Second, 10*time.Second).Draw(rt, "history")
				var differs string
				synctest.Test(t, func(t *testing.T) { differs = play(newStore.open(t), all) })
				if differs != "" {
					rt.Fatal(differs)
				}
			})
		})
	}
}

// In Redis the clock is real, so no key and no grace period ends during a history.
func TestHistoriesInRedis(t *testing.T) {
	server := redistest.New(t)
	a, b := openRedis(t, server.URL()), openRedis(t, server.URL())
	rapid.Check(t, func(rt *rapid.T) {
		all := steps(25, 0).Draw(rt, "history")
		if _, err := server.Do("DEL", "ratelimit:settings"); err != nil {
			rt.Fatal(err)
		}
		if differs := play([]*Ring{ring(t, &flaky{Keeper: hidden.Of[settings.Keeper](a)}), ring(t, &flaky{Keeper: hidden.Of[settings.Keeper](b)})}, all); differs != "" {
			rt.Fatal(differs)
		}
	})
}

// Whatever a store holds, a ring does not panic, and accepts only valid records.
func FuzzParse(f *testing.F) {
	const valid = `{"id":"abcdefgh23","project":"p","created":"2026-01-01T00:00:00Z","sha256":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`
	f.Add("abcdefgh23", valid, "abcdefgh23/1", strings.Replace(valid, "{", `{"turn":1,"grace":"2026-01-01T00:00:00Z",`, 1))
	f.Add("abcdefgh23", "null", "abcdefgh23/1", valid)
	f.Add("", "{}", "/", "[]")
	f.Fuzz(func(t *testing.T, name, text, name2, text2 string) {
		r := &Ring{}
		r.set(r.parse(map[string]string{keyPrefix + name: text, keyPrefix + name2: text2}), nil)
		for _, k := range r.List() {
			if !isID(k.ID) || k.validate() != nil || r.records[k.ID][0].Number != 0 {
				t.Errorf("%+v", k)
			}
		}
		r.Find(join("abcdefgh23", text))
		r.Find(text)
	})
}
