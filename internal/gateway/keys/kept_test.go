package keys

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/settings/settingstest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
)

// Keys outlive the gateway that has created them.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	s := openSQLite(t, path)
	r := ring(t, hidden.Of[settings.Keeper](s))
	kept, k := create(t, r, "p", "kept", time.Hour)
	before, rotated := create(t, r, "q", "rotated", 0)
	now, _ := rotate(t, r, rotated.ID, time.Hour)
	gone, revoked := create(t, r, "p", "revoked", 0)
	rotate(t, r, revoked.ID, time.Hour)
	revoke(t, r, revoked.ID)
	list := r.List()
	r.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r = ring(t, hidden.Of[settings.Keeper](openSQLite(t, path)))
	wantKey(t, r, kept, true, k)
	wantKey(t, r, before, true, rotated)
	wantKey(t, r, now, true, rotated)
	wantKey(t, r, gone, false, Key{})
	if diff := difference(list, r.List()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if err := r.Missed(); err != nil {
		t.Error(err)
	}
}

// A change that one gateway makes reaches the others.
func TestFollow(t *testing.T) {
	for name, newStore := range stores {
		t.Run(name, func(t *testing.T) {
			connect := newStore(t)
			a, b := ring(t, connect()), ring(t, connect())
			valid := func(r *Ring, secret string) bool { _, ok := r.Find(secret); return ok }
			first, k := create(t, a, "p", "", 0)
			testkit.Eventually(t, "it is created", func() bool { return valid(b, first) })
			second, _ := rotate(t, b, k.ID, 0)
			testkit.Eventually(t, "it is replaced", func() bool { return valid(a, second) && !valid(a, first) })
			revoke(t, a, k.ID)
			testkit.Eventually(t, "it is revoked", func() bool { return !valid(b, second) })
			if len(a.List()) != 0 || len(b.List()) != 0 {
				t.Errorf("%v, %v", a.List(), b.List())
			}
			b.Close()
			third, k3 := create(t, a, "p", "", 0)
			rotate(t, b, k3.ID, 0) // a ring that has not loaded the key reads the store first
			testkit.Eventually(t, "it is replaced once more", func() bool { return !valid(a, third) })
			for _, r := range []*Ring{a, b} {
				if err := r.Missed(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Gateways that change keys at the same time do so one after another: of the new secrets of
// a key exactly one is valid, and of a revoked key none.
func TestAtTheSameTime(t *testing.T) {
	for name, newStore := range stores {
		t.Run(name, func(t *testing.T) {
			connect := newStore(t)
			rings := []*Ring{ring(t, connect()), ring(t, connect())}
			_, stays := create(t, rings[0], "p", "stays", 0)
			_, goes := create(t, rings[1], "p", "goes", 0)
			const each = 5
			var mu sync.Mutex
			secrets := map[string][]string{} // by id
			created := 0
			keep := func(id, secret string) {
				mu.Lock()
				defer mu.Unlock()
				secrets[id] = append(secrets[id], secret)
			}
			var wg sync.WaitGroup
			for i, r := range rings {
				for n := range each {
					wg.Go(func() {
						secret, _, err := r.Rotate(bg, stays.ID, 0)
						if err != nil {
							t.Error(err)
						}
						keep(stays.ID, secret)
					})
					wg.Go(func() {
						secret, k, err := r.Create(bg, "q", fmt.Sprint(i, n), 0)
						if err != nil {
							t.Error(err)
						}
						keep(k.ID, secret)
					})
					wg.Go(func() {
						secret, _, err := r.Rotate(bg, goes.ID, time.Hour)
						if err != nil && !errors.Is(err, ErrUnknown) {
							t.Error(err)
						}
						keep(goes.ID, secret)
					})
					created++
				}
				wg.Go(func() {
					if err := r.Revoke(bg, goes.ID); err != nil && !errors.Is(err, ErrUnknown) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			for _, r := range append(rings, ring(t, connect())) {
				if err := r.Load(bg); err != nil {
					t.Fatal(err)
				}
				for id, all := range secrets {
					valid := 0
					for _, secret := range all {
						if k, ok := r.Find(secret); ok && k.ID == id {
							valid++
						}
					}
					if want := map[bool]int{true: 0, false: 1}[id == goes.ID]; valid != want {
						t.Errorf("of %d secrets of %s, %d are valid; want %d", len(all), id, valid, want)
					}
				}
				if got := len(r.List()); got != created+1 {
					t.Errorf("%d keys; want %d", got, created+1)
				}
				r.Close()
				if turns := len(r.records[stays.ID]); turns != 1+2*each {
					t.Errorf("it has had %d secrets; want %d", turns, 1+2*each)
				}
				if err := r.Missed(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// No part of a secret is stored, logged or shown anywhere, and its hash is only in the store.
func TestSecretsAreNowhere(t *testing.T) {
	dir := t.TempDir()
	s := openSQLite(t, filepath.Join(dir, "limits.db"))
	r := ring(t, hidden.Of[settings.Keeper](s))
	first, k := create(t, r, "p", "n", time.Hour)
	second, _ := rotate(t, r, k.ID, time.Hour)
	list, err := json.Marshal(r.List())
	if err != nil {
		t.Fatal(err)
	}
	said := []string{fmt.Sprintf("%+v %#v %s", r.List(), k, list)}
	for _, id := range []string{first, second} {
		_, _, err := r.Rotate(bg, id, 0)
		said = append(said, fmt.Sprint(err, r.Revoke(bg, id)))
	}
	all, err := hidden.Of[settings.Keeper](s).Settings(bg)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range all { // break the record in many ways
		for i := range len(text) {
			for _, broken := range []string{text[:i], text[:i] + "!" + text[i:], text + text[i:]} {
				other := &Ring{prefix: keyPrefix}
				other.parse(map[string]string{name: broken})
				said = append(said, fmt.Sprint(other.Missed()))
			}
		}
	}
	stored := fmt.Sprint(all)
	files, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		bytes, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		stored += string(bytes)
	}
	reported := strings.Join(said, "\n")
	r.Close()
	for i, secret := range []string{first, second} {
		_, rest, _ := split(secret)
		if strings.Contains(stored+reported, rest[:8]) || strings.Contains(stored+reported, rest[24:]) {
			t.Error("a secret is seen")
		}
		hash := r.records[k.ID][i].Hash
		if !strings.Contains(stored, base64.StdEncoding.EncodeToString(hash)) {
			t.Error("its hash is not stored") // otherwise the test looks for the wrong text
		}
		for _, form := range []string{string(hash[:8]), base64.StdEncoding.EncodeToString(hash)[:8], hex.EncodeToString(hash)[:8], fmt.Sprint(hash[:4])} {
			if strings.Contains(reported, strings.Trim(form, "[]")) {
				t.Error("a hash is seen")
			}
		}
	}
}

// A key with a record that is not valid is left out, and reported. Other keys stay valid.
func TestBadRecords(t *testing.T) {
	server := redistest.New(t)
	s := openRedis(t, server.URL())
	r := ring(t, hidden.Of[settings.Keeper](s))
	good, k := create(t, r, "p", "good", 0)
	first, bad := create(t, r, "p", "bad", 0)
	second, _ := rotate(t, r, bad.ID, time.Hour)
	id, name, turn := bad.ID, keyPrefix+bad.ID, keyPrefix+bad.ID+"/1"
	all, err := hidden.Of[settings.Keeper](s).Settings(bg)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []struct{ setting, value, says string }{
		{name, "", "EOF"},
		{name, "{", "unexpected EOF"},
		{name, "[]", "cannot unmarshal array"},
		{name, "{}", "it is of another key"},
		{name, all[keyPrefix+k.ID], "it is of another key"},
		{turn, all[name], "it is of another key"},
		{name, all[turn], "it is of another key"},
		{name, strings.Replace(all[name], "{", `{"scope":"read",`, 1), "unknown field"},
		{turn, strings.Replace(all[turn], "{", `{"scope":"read",`, 1), "unknown field"},
		{name, all[name] + "{}", "it must be one value"},
		{name, strings.Replace(all[name], `"project":"p"`, `"project":"a b"`, 1), "only visible ASCII"},
		{name, strings.Replace(all[name], `"bad"`, `"a\nb"`, 1), "control characters"},
		{name, `{"id":"` + id + `","project":"p","created":"2026-01-01T00:00:00Z","sha256":"AAAA"}`, "its hash has 3 bytes"},
		{turn, strings.Replace(all[turn], `"turn":1`, `"turn":-1`, 1), "it is of another key"},
		{turn, "null", "not all that the store should have"},
	} {
		do(t, server, "HSET", "ratelimit:settings", each.setting, each.value)
		late := ring(t, hidden.Of[settings.Keeper](s))
		wantKey(t, late, first, false, Key{})
		wantKey(t, late, second, false, Key{})
		wantKey(t, late, good, true, k)
		if err := late.Missed(); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), each.says) && each.setting != turn ||
			!strings.Contains(err.Error(), id) || strings.Count(err.Error(), "ratelimit:") != 1 {
			t.Errorf("%s %.60s: %v; want %s", each.setting, each.value, err, each.says)
		}
		if err := late.Missed(); err != nil {
			t.Errorf("said twice: %v", err)
		}
		if _, _, err := late.Rotate(bg, id, 0); !errors.Is(err, ErrUnknown) {
			t.Errorf("rotated: %v", err)
		}
		late.Close()
		do(t, server, "HSET", "ratelimit:settings", name, all[name], turn, all[turn])
	}
	do(t, server, "HSET", "ratelimit:settings", keyPrefix, "{}", "key", "?", "keys/"+id, "?", keyPrefix+id+"/2", all[turn])
	do(t, server, "HDEL", "ratelimit:settings", turn, keyPrefix+id+"/2")
	late := ring(t, hidden.Of[settings.Keeper](s))
	wantKey(t, late, first, true, bad) // the second secret has vanished without a trace
	do(t, server, "HDEL", "ratelimit:settings", name)
	do(t, server, "HSET", "ratelimit:settings", turn, all[turn])
	late = ring(t, hidden.Of[settings.Keeper](s))
	late.Missed()
	if len(late.List()) != 1 {
		t.Errorf("a rotation without its key: %v", late.List())
	}
}

func do(t *testing.T, server *redistest.Server, args ...string) {
	t.Helper()
	if _, err := server.Do(args...); err != nil {
		t.Fatal(err)
	}
}

// flaky is a store that fails when a test says so.
type flaky struct {
	settings.Keeper
	reads, writes error
}

func (f *flaky) Settings(ctx context.Context) (map[string]string, error) {
	if f.reads != nil {
		return nil, f.reads
	}
	return f.Keeper.Settings(ctx)
}

func (f *flaky) PutSettings(ctx context.Context, values map[string]string, onlyNew bool) (map[string]string, error) {
	if f.writes != nil {
		return nil, f.writes
	}
	return f.Keeper.PutSettings(ctx, values, onlyNew)
}

// WatchSettings reports no changes, so that a test sees only what its calls do.
func (f *flaky) WatchSettings(func()) (stop func()) { return func() {} }

// A change that the store does not take has not happened, and the error says so.
func TestKeeperFails(t *testing.T) {
	lost := errors.New("ratelimit: lost")
	s := openSQLite(t, filepath.Join(t.TempDir(), "limits.db"))
	f := &flaky{Keeper: hidden.Of[settings.Keeper](s)}
	r := ring(t, f)
	first, k := create(t, r, "p", "", 0)
	second, _ := rotate(t, r, k.ID, time.Hour)
	before, err := hidden.Of[settings.Keeper](s).Settings(bg)
	if err != nil {
		t.Fatal(err)
	}
	for name, fail := range map[string]func(){"reading": func() { f.reads = lost }, "writing": func() { f.writes = lost }, "both": func() { f.reads, f.writes = lost, lost }} {
		fail()
		var errs = map[string]error{"revoked": r.Revoke(bg, k.ID)}
		_, _, errs["rotated"] = r.Rotate(bg, k.ID, 0)
		if name != "reading" { // creating a key reads nothing
			_, _, errs["made"] = r.Create(bg, "p", "", 0)
		}
		for done, err := range errs {
			if !errors.Is(err, lost) || !strings.Contains(err.Error(), "the key was not "+done) || strings.Count(err.Error(), "ratelimit:") != 1 {
				t.Errorf("%s: %v", name, err)
			}
		}
		f.reads, f.writes = nil, nil
		wantKey(t, r, first, true, k)
		wantKey(t, r, second, true, k)
		if got := r.List(); len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
		if after, err := hidden.Of[settings.Keeper](s).Settings(bg); err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: %v, %v; want %v", name, after, err, before)
		}
	}
	f.reads = lost
	if r, err := Open(f, nil); r != nil || !errors.Is(err, lost) {
		t.Errorf("opened: %v, %v", r, err)
	}
}

// A ring ignores other settings, such as limits of projects. Where only those change, it
// does not read its keys again.
func TestOtherSettings(t *testing.T) {
	s := openSQLite(t, filepath.Join(t.TempDir(), "limits.db"))
	settingstest.Put(t, hidden.Of[settings.Keeper](s), "project/p", "{}")
	r := ring(t, &flaky{Keeper: hidden.Of[settings.Keeper](s)})
	create(t, r, "p", "", 0)
	load := func() map[string]*entry {
		if err := r.Load(bg); err != nil {
			t.Fatal(err)
		}
		return *r.entries.Load()
	}
	before := load()
	settingstest.Put(t, hidden.Of[settings.Keeper](s), "project/p", `{"requests_per_minute":1}`)
	if after := load(); after[r.List()[0].ID] != before[r.List()[0].ID] {
		t.Error("keys were read anew")
	}
	_, k := create(t, r, "p", "deleted by hand", 0)
	err := hidden.Of[transaction.Store](s).Update(bg, func(tx transaction.Tx) error {
		_, err := tx.Exec("DELETE FROM settings WHERE name = ?", []byte(keyPrefix+k.ID))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if after := load(); after[k.ID] != nil || len(after) != 1 {
		t.Error("keys were not read anew")
	}
	all, err := hidden.Of[settings.Keeper](s).Settings(bg)
	if err != nil || len(all) != 2 || all["project/p"] != `{"requests_per_minute":1}` {
		t.Errorf("%v, %v", all, err)
	}
	if err := r.Missed(); err != nil {
		t.Error(err)
	}
}

// A ring reports keys that have vanished from the store, and not keys that were revoked.
func TestForgotten(t *testing.T) {
	s := openSQLite(t, filepath.Join(t.TempDir(), "limits.db"))
	reported := 0
	r, err := Open(&flaky{Keeper: hidden.Of[settings.Keeper](s)}, func(n int) { reported += n })
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var last Key
	for range 3 {
		_, last = create(t, r, "p", "", 0)
	}
	rotate(t, r, last.ID, time.Hour)
	revoke(t, ring(t, &flaky{Keeper: hidden.Of[settings.Keeper](s)}), last.ID)
	forget := func() error {
		return hidden.Of[transaction.Store](s).Update(bg, func(tx transaction.Tx) error { _, err := tx.Exec("DELETE FROM settings"); return err })
	}
	nothing := func() error { return nil }
	for i, step := range []struct {
		do             func() error
		reported, left int
	}{
		{nothing, 0, 2}, {forget, 2, 0}, {nothing, 2, 0},
	} {
		if err := errors.Join(step.do(), r.Load(bg)); err != nil {
			t.Fatal(err)
		}
		if got := len(r.List()); reported != step.reported || got != step.left {
			t.Errorf("step %d: %d are reported, and %d are left: want %d and %d", i, reported, got, step.reported, step.left)
		}
	}
}

// A store may be closed before the ring is.
func TestClosedStore(t *testing.T) {
	s := openSQLite(t, filepath.Join(t.TempDir(), "limits.db"))
	r := ring(t, hidden.Of[settings.Keeper](s))
	secret, k := create(t, r, "p", "", 0)
	s.Close()
	if err := r.Load(bg); err != nil {
		t.Error(err)
	}
	wantKey(t, r, secret, true, k)
	if err := r.Revoke(bg, k.ID); err == nil {
		t.Error("revoked in a store that is closed")
	}
	wantKey(t, r, secret, true, k)
	r.Close()
	r.Close()
	if err := r.Missed(); err != nil {
		t.Error(err)
	}
	if _, err := Open(hidden.Of[settings.Keeper](s), nil); err == nil {
		t.Error("opened in a store that is closed")
	}
}
