package ratelimit_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// elsewhere is a store in memory that behaves as if it was on another machine: it counts its
// questions, and can be lost.
type elsewhere struct {
	*store.Memory

	mu    sync.Mutex
	asked []string
	lost  error

	renewals int // of slots
}

func newElsewhere() *elsewhere { return &elsewhere{Memory: store.NewMemory()} }

// Local returns false: other programs may use the store.
func (e *elsewhere) Local() bool { return false }

func (e *elsewhere) ask(what string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, what)
	return e.lost
}

func (e *elsewhere) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if err := e.ask("take"); err != nil {
		return nil, nil, err
	}
	return e.Memory.Take(ctx, charges)
}

// Renew takes slots once more.
func (e *elsewhere) Renew(ctx context.Context, r store.Receipt, places []int) (store.Receipt, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.renewals++; e.lost != nil {
		return nil, e.lost
	}
	return hidden.Of[accounts.Renewer](e.Memory).Renew(ctx, r, places)
}

// renewed returns how often slots were to be taken once more.
func (e *elsewhere) renewed() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.renewals
}

func (e *elsewhere) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	if err := e.ask("settle"); err != nil {
		return err
	}
	return e.Memory.Settle(ctx, r, actual)
}

func (e *elsewhere) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	if err := e.ask("peek"); err != nil {
		return nil, err
	}
	return e.Memory.Peek(ctx, charges)
}

func (e *elsewhere) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	if err := e.ask("read"); err != nil {
		return nil, 0, err
	}
	return e.Memory.Read(ctx, keys...)
}

func (e *elsewhere) lose(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost = err
}

// heard returns what the store was asked since the last call.
func (e *elsewhere) heard() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	heard := strings.Join(e.asked, " ")
	e.asked = nil
	return heard
}

// onStore returns a limiter on a store.
func onStore(t testing.TB, s ratelimit.Store, q quotas) *ratelimit.RateLimiter {
	t.Helper()
	rl, err := ratelimit.NewWithStore(s, ratelimit.Config{Quotas: q})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rl.Close() })
	return rl
}

func TestNewWithStoreRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		store ratelimit.Store
		cfg   ratelimit.Config
		says  string
	}{
		"no store":      {nil, ratelimit.Config{}, "nil"},
		"a backend":     {store.NewMemory(), ratelimit.Config{Backend: ratelimit.BackendYAML}, "Backend"},
		"a file":        {store.NewMemory(), ratelimit.Config{FilePath: "limits.yaml"}, "FilePath"},
		"a store's way": {store.NewMemory(), ratelimit.Config{OnStoreLoss: "deny"}, "OnStoreLoss"},
		"a bad quota":   {store.NewMemory(), ratelimit.Config{Quotas: quotas{"m": {MaxRPM: -1}}}, "max_rpm"},
		"a bad profile": {store.NewMemory(), ratelimit.Config{Providers: []ratelimit.Provider{"x"}}, "provider"},
	} {
		rl, err := ratelimit.NewWithStore(c.store, c.cfg)
		if rl != nil || err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v; want an error that says %q", name, rl, err, c.says)
		}
	}
}

// A call asks the store once, and so does its end.
func TestRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newElsewhere()
		q := quotas{"m": {MaxRPM: 5, MaxTPM: 100, MaxTPD: 150, MaxConcurrent: 50}}
		rl := onStore(t, s, q)
		var reserved *ratelimit.Reservation
		try := func(tokens int) func() ratelimit.Decision {
			return func() (d ratelimit.Decision) {
				reserved, d = rl.TryAcquire("m", tokens)
				return d
			}
		}
		none := ratelimit.Decision{}
		for i, step := range []struct {
			what string
			do   func() ratelimit.Decision
			want string
		}{
			{"before anything is used", try(101), "take"},
			{"the day's first", try(10), "take"},
			{"the second", try(10), "take"},
			{"its end", func() ratelimit.Decision { reserved.Commit(5, 5); return none }, "settle"},
			{"one that is too large for what is left", try(90), "take"},
			{"one that is too large for ever", try(101), "take"},
			{"one in turn", func() ratelimit.Decision { reserved, _ = rl.Acquire(t.Context(), "m", 10); return none }, "take"},
			{"its end", func() ratelimit.Decision { reserved.Cancel(); return none }, "settle"},
			{"after a cancel the day may be another", try(10), "take"},
			{"all that is left", try(70), "take"},
			{"full", try(1), "take"},
			{"nothing", try(0), "take"},
			{"a look", func() ratelimit.Decision { return rl.Decide("m", 1) }, "peek"},
			{"recorded", func() ratelimit.Decision { rl.RecordUsage("m", 1, 1); return none }, "take"},
			{"with a debt", try(1), "take"},
			{"stats", func() ratelimit.Decision { rl.Stats("m"); return none }, "peek"},
			{"an hour later", func() ratelimit.Decision { time.Sleep(time.Hour); return none }, ""},
			{"the same day", try(10), "take"},
			{"all of the day", try(38), "take"},
			{"the day is full", try(1), "take"},
			{"a day later", func() ratelimit.Decision { time.Sleep(24 * time.Hour); return none }, ""},
			{"another day", try(10), "take"},
			{"the same again", try(10), "take"},
		} {
			d := step.do()
			if got := s.heard(); got != step.want {
				t.Errorf("%d, %s: asked %q; want %q", i, step.what, got, step.want)
			}
			if stats := onStore(t, s, q).Stats("m"); d != none && d.Stats != stats { // as a limiter that has not seen a day yet finds it
				t.Errorf("%d, %s: says\n  %+v\nof\n  %+v", i, step.what, d.Stats, stats)
			}
			s.heard()
		}
	})
}

// A limiter learns of a day that was refunded and begun anew.
func TestAnotherDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newElsewhere()
		a, b := onStore(t, s, quotas{"m": {MaxRPD: 9}}), onStore(t, s, quotas{"m": {MaxRPD: 9}})
		for name, again := range map[string]func(){
			"by another limiter": func() {
				time.Sleep(time.Second)
				a.Reset("m")
				a.RecordUsage("m", 1, 1)
			},
			"by its own first call": func() {
				a.Reset("m")
				time.Sleep(time.Millisecond)
			},
			"when it was reset": func() {
				b.Reset("m")
				time.Sleep(time.Millisecond)
				b.RecordUsage("m", 1, 1)
			},
			"when its first call was cancelled": func() {
				b.Reset("m")
				reserved := mustTake(t, b, 1)
				time.Sleep(time.Millisecond)
				reserved.Cancel()
				b.RecordUsage("m", 1, 1)
			},
		} {
			mustTake(t, a, 1)
			mustTake(t, b, 1)
			again()
			_, d := b.TryAcquire("m", 1)
			if want := onStore(t, s, b.Quotas()).Stats("m"); d.Stats != want {
				t.Errorf("begun anew %s:\n  %+v\nwant\n  %+v", name, d.Stats, want)
			}
		}
		noon := ratelimit.ModelQuota{MaxRPD: 9, DayResetsAt: "12:00 UTC"}
		mustSetQuota(t, b, "m", noon)
		_, d := b.TryAcquire("m", 1)
		if want := onStore(t, s, b.Quotas()).Stats("m"); d.Stats != want {
			t.Errorf("%+v; want %+v", d.Stats, want)
		}
	})
}

// Limiters on one store share their quotas, and each closes only what it has made.
func TestSharedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newElsewhere()
		q := quotas{"m": {MaxRPM: 2, MaxRPD: 9}}
		a, b := onStore(t, s, q), onStore(t, s, q)
		reserved := mustTake(t, a, 1)
		mustTake(t, b, 1)
		if res, d := a.TryAcquire("m", 1); res != nil || d.Code != overRPM || d.Stats.RPM != 2 {
			t.Errorf("%+v", d)
		}
		if got := b.State()["m"]; len(got.Requests) != 2 {
			t.Errorf("%+v", got)
		}
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() {
				_, err := a.Acquire(t.Context(), "m", 1)
				errs <- err
			}()
		}
		synctest.Wait()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, store.ErrClosed) {
				t.Errorf("who waits is told %v; want %v", err, store.ErrClosed)
			}
		}
		if _, d := a.TryAcquire("m", 1); d.Code != ratelimit.DecisionStoreLost {
			t.Errorf("closed: %+v", d)
		}
		if d := a.Decide("m", 1); d.Code != ratelimit.DecisionStoreLost {
			t.Errorf("closed: %+v", d)
		}
		if err := a.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
		reserved.Cancel() // a call under way can still be settled
		mustTake(t, b, 1)
		if err := errors.Join(b.Load(), b.Persist(), b.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A limiter on a store has no file.
func TestStoreHasNoFile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.MkdirAll(filepath.Join(home, ".core"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, ".core", "ratelimits.yaml")
	if err := os.WriteFile(path, []byte("quotas: {m: {max_rpm: 5}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	rl := onStore(t, store.NewMemory(), quotas{"m": {MaxRPM: 1}})
	if err := errors.Join(rl.Load(), rl.Persist()); err != nil || rl.Quotas()["m"].MaxRPM != 1 {
		t.Errorf("%v, quotas %v", err, rl.Quotas())
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "max_rpm: 1") {
		t.Errorf("%s, %v", text, err)
	}
}

// A store that decides by itself while it is lost is asked, whatever settlements are still to
// be made.
func TestOwedByWhoDecidesWithout(t *testing.T) {
	s := &forgiving{newElsewhere()}
	rl := onStore(t, s, quotas{"m": {MaxTPM: 100}})
	reserved := mustTake(t, rl, 50)
	s.lose(errors.New("ratelimit: gone"))
	reserved.Commit(1, 1)
	mustTake(t, rl, 10)
	s.lose(nil)
	if _, d := rl.TryAcquire("m", 10); d.Stats.TPM != 22 {
		t.Errorf("%+v", d)
	}
}

// forgiving is a store that goes on admitting calls while it is lost.
type forgiving struct{ *elsewhere }

func (f *forgiving) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	return f.Memory.Take(ctx, charges)
}

// Settlements that a lost store has missed are made when it is back, and the loss is reported
// once.
func TestLostStore(t *testing.T) {
	s := newElsewhere()
	rl := onStore(t, s, quotas{"m": {MaxTPM: 100}, "free": {}})
	reserved := mustTake(t, rl, 80)
	gone := errors.New("ratelimit: gone")
	s.lose(gone)
	reserved.Commit(5, 5)
	if res, d := rl.TryAcquire("m", 1); res != nil || d.Code != ratelimit.DecisionStoreLost || d.Reason() != gone.Error() || d.RetryAfter <= 0 {
		t.Errorf("%+v", d)
	}
	if _, err := rl.Acquire(t.Context(), "m", 1); !errors.Is(err, gone) {
		t.Error(err)
	}
	if d := rl.Decide("m", 1); d.Code != ratelimit.DecisionStoreLost {
		t.Errorf("%+v", d)
	}
	s.lose(nil)
	if res, d := rl.TryAcquire("m", 90); res == nil || d.Stats.TPM != 100 {
		t.Errorf("it was not corrected: %+v", d)
	}
	if err := rl.Persist(); !errors.Is(err, gone) {
		t.Errorf("Persist says %v", err)
	}
	if err := errors.Join(rl.Persist(), rl.Close()); err != nil {
		t.Errorf("and again %v", err)
	}
}

// waits returns how long each of n waits at a limiter takes, where the first call learns when
// to come.
func waits(t *testing.T, rl *ratelimit.RateLimiter, n int) (took []time.Duration) {
	t.Helper()
	for range n {
		took = append(took, acquired(t, rl, 1))
	}
	return took
}

// A call that waits for a limit that nodes share asks at the time of its answer, or a
// little later, so that not all nodes ask at the same instant. No other call waits longer for
// that.
func TestSpread(t *testing.T) {
	const times = 50
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			store ratelimit.Store
			most  time.Duration
		}{
			"memory":    {store.NewMemory(), 0},
			"elsewhere": {newElsewhere(), 10 * time.Millisecond},
		} {
			rl := onStore(t, c.store, quotas{"m": {MaxRPM: 1}})
			mustTake(t, rl, 1)
			took := waits(t, rl, times)
			least, most := slices.Min(took), slices.Max(took)
			if least < time.Minute || most > time.Minute+c.most {
				t.Errorf("%s: waited for %v to %v", name, least, most)
			}
			if distinct := len(slices.Compact(slices.Sorted(slices.Values(took)))); c.most > 0 && distinct < times/2 {
				t.Errorf("%s: all waited for as long: %v", name, took)
			}
			closeFile(t, rl)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newElsewhere()
		rl := onStore(t, s, quotas{"m": {MaxRPM: 1}})
		for range times {
			mustTake(t, rl, 1)
			time.Sleep(time.Minute - 16*time.Millisecond)
			if took := acquired(t, rl, 1); took < 16*time.Millisecond || took > 17*time.Millisecond {
				t.Errorf("waited for %v where 16ms were left", took)
			}
			time.Sleep(time.Minute)
		}
	})
}

// Of the lines at two nodes, neither is served before the other for long.
func TestSpreadIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 60
		s := newElsewhere()
		q := quotas{"m": {MaxRPM: 1}}
		lines := []*ratelimit.RateLimiter{onStore(t, s, q), onStore(t, s, q)}
		mustTake(t, lines[0], 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex
		served := make([]int, len(lines))
		var wg sync.WaitGroup
		for range each {
			for k, rl := range lines {
				wg.Go(func() {
					if _, err := rl.Acquire(ctx, "m", 1); err != nil {
						return
					}
					mu.Lock()
					defer mu.Unlock()
					served[k]++
					if served[k] == each {
						cancel()
					}
				})
			}
		}
		wg.Wait()
		if least := slices.Min(served); least < each/4 {
			t.Errorf("when one line was served, of %d each, they had %v", each, served)
		}
	})
}

// board is a store with settings, as far as a limiter needs them.
type board struct {
	*elsewhere

	mu       sync.Mutex
	values   map[string]string
	watchers map[int]func()
	watched  int
}

func newBoard() *board {
	return &board{elsewhere: newElsewhere(), values: map[string]string{}, watchers: map[int]func(){}}
}

func (b *board) Settings(context.Context) (map[string]string, error) {
	if err := b.ask("settings"); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.values), nil
}

func (b *board) PutSettings(_ context.Context, values map[string]string, onlyNew bool) (map[string]string, error) {
	if err := b.ask("put"); err != nil {
		return nil, err
	}
	stands := map[string]string{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, value := range values {
		if _, ok := b.values[name]; !ok || !onlyNew {
			b.values[name] = value
		}
		stands[name] = b.values[name]
	}
	b.tell()
	return stands, nil
}

func (b *board) SwapSetting(_ context.Context, name, old, new string) (bool, error) {
	if err := b.ask("swap"); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.values[name] != old {
		return false, nil
	}
	b.values[name] = new
	b.tell()
	return true, nil
}

func (b *board) tell() {
	for _, tell := range b.watchers {
		tell()
	}
}

func (b *board) WatchSettings(changed func()) (stop func()) {
	news := make(chan struct{}, 1)
	news <- struct{}{}
	stopped, done := make(chan struct{}), make(chan struct{})
	b.mu.Lock()
	b.watched++
	id := b.watched
	b.watchers[id] = func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	b.mu.Unlock()
	go func() {
		defer close(done)
		for {
			select {
			case <-news:
				changed()
			case <-stopped:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		b.mu.Lock()
		delete(b.watchers, id)
		b.mu.Unlock()
		close(stopped)
		<-done
	})
}

// A call that waits for a model does not ask again when another model's quota is set.
func TestFollowedInPeace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBoard()
		q := quotas{"m": {MaxRPM: 1}, "n": {MaxRPM: 1}}
		a, b := onStore(t, s, q), onStore(t, s, q)
		mustSetQuota(t, a, "m", q["m"])
		mustTake(t, a, 1)
		go b.Acquire(t.Context(), "m", 1)
		synctest.Wait()
		s.heard()
		mustSetQuota(t, a, "n", ratelimit.ModelQuota{MaxRPM: 2})
		synctest.Wait()
		if got := s.heard(); strings.Contains(got, "take") || b.Quotas()["n"].MaxRPM != 2 {
			t.Errorf("asked %q, and n has %+v", got, b.Quotas()["n"])
		}
	})
}

// A change while the store cannot be asked is found when it can.
func TestFollowedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBoard()
		rl := onStore(t, s, quotas{"m": {MaxRPM: 1}})
		synctest.Wait()
		gone := errors.New("ratelimit: gone")
		s.lose(gone)
		if err := rl.SetQuota("m", ratelimit.ModelQuota{MaxRPM: 5}); !errors.Is(err, gone) || rl.Quotas()["m"].MaxRPM != 1 {
			t.Errorf("%v, and %v", err, rl.Quotas())
		}
		s.mu.Lock()
		s.values["quota/m"] = `{"max_rpm": 2}`
		s.tell()
		s.mu.Unlock()
		time.Sleep(time.Minute)
		s.lose(nil)
		time.Sleep(2 * time.Second)
		if got := rl.Quotas()["m"].MaxRPM; got != 2 {
			t.Errorf("m has %d", got)
		}
		if err := rl.Close(); !errors.Is(err, gone) {
			t.Errorf("Close says %v", err)
		}
		rl = onStore(t, s, nil)
		synctest.Wait()
		s.lose(gone)
		s.mu.Lock()
		s.tell()
		s.mu.Unlock()
		synctest.Wait()
		start := time.Now()
		rl.Close()
		if time.Since(start) != 0 {
			t.Errorf("Close has waited for %v", time.Since(start))
		}
		if rl, err := ratelimit.NewWithStore(s, ratelimit.Config{}); rl != nil || !errors.Is(err, gone) {
			t.Errorf("%v, %v", rl, err)
		}
	})
}

// An invalid quota in the store is left out, and reported.
func TestPostedNonsense(t *testing.T) {
	for name, value := range map[string]string{
		"quota/m":              `{"max_rpm": -1}`,
		"quota/n":              `{"max_rpm": 1`,
		"quota/newer":          `{"max_rpm": 1, "max_images": 3}`,
		"quota/two":            `{"max_rpm": 1} {"max_rpm": 1}`,
		"quota/text":           `"much"`,
		"quota/empty":          ``,
		"quota/null":           `null`,
		"quota/list":           `[]`,
		"quota/":               `{"max_rpm": 1}`,
		"quota/a\x00b":         `{"max_rpm": 1}`,
		"quota/zone":           `{"max_rpm": 1, "day_resets_at": "00:00 Nowhere"}`,
		"quota/float":          `{"max_rpm": 1.5}`,
		"quota/" + "\xff\xfe":  `{"max_rpm": 1}`,
		"quota/too much":       `{"max_rpm": 9223372036854775807}`,
		"quota/more than fits": `{"max_rpm": 92233720368547758070}`,
	} {
		s := newBoard()
		s.values[name] = value
		s.values["quota/fine"] = `{"max_tpm": 5}`
		s.values["other"] = "not a quota"
		rl := onStore(t, s, quotas{"m": {MaxRPM: 7}})
		if got, want := rl.Quotas(), (quotas{"m": {MaxRPM: 7}, "fine": {MaxTPM: 5}}); !maps.Equal(got, want) {
			t.Errorf("%q: quotas %v; want %v", name, got, want)
		}
		if err := rl.Close(); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), "quota/") {
			t.Errorf("%q: Close says %v", name, err)
		}
	}
}

// partial is a store that admits only its share of a limit.
type partial struct{ *elsewhere }

func (p *partial) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	r, decisions, err := p.elsewhere.Take(ctx, charges)
	for i := range decisions {
		decisions[i].Remaining /= 2
	}
	return r, decisions, err
}

// A unit without a limit has no share.
func TestPartOfTheBoundless(t *testing.T) {
	rl := onStore(t, &partial{newElsewhere()}, quotas{"m": {MaxRPM: 10}})
	mustTake(t, rl, 5)
	if _, d := rl.TryAcquire("m", 5); d.Stats.TPM != 10 || d.Stats.RPD != 2 {
		t.Errorf("%+v", d)
	}
}
