package project_test

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
)

// setLimit sets a limit that is valid.
func setLimit(t testing.TB, l *project.Limiter, id string, limit project.Limit) {
	t.Helper()
	if err := l.SetLimit(id, limit); err != nil {
		t.Fatal(err)
	}
	if got := l.Limit(id); got != limit {
		t.Fatalf("%q has %+v; want %+v", id, got, limit)
	}
}

// What was used stays, whatever the limit is.
func TestSetLimitKeepsWhatWasUsed(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, kind(t, project.Config{Default: &project.Limit{RequestsPerMinute: 10}}))
			c := project.Call{Project: "p"}
			use(t, l, "p", 10)
			use(t, l, "q", 10)
			for most, remains := range map[int]int64{3: 0, 10: 0, 11: 1, 1000: 990, 1: 0} {
				setLimit(t, l, "p", project.Limit{RequestsPerMinute: most})
				if left := left(t, l, "p"); left["minute"] != remains {
					t.Errorf("with %d: %d left; want %d", most, left["minute"], remains)
				}
				if d := spend(t, l, project.Call{Project: "q"}); d.Allowed {
					t.Error("the limit of another project has changed")
				}
			}
			setLimit(t, l, "p", project.Limit{})
			for range 5 {
				spend(t, l, c)
			}
			setLimit(t, l, "p", project.Limit{RequestsPerMinute: 11}) // while it was unlimited, nothing was counted
			if left := left(t, l, "p"); left["minute"] != 1 {
				t.Errorf("%d left; want 1", left["minute"])
			}
		})
	}
}

// A larger limit lets those who wait pass at once, as many as there is room for, in
// order; a smaller one makes them wait longer.
func TestSetLimitReachesThoseWhoWait(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 2}}, func(t *testing.T, l *line, c project.Call) {
		var names []string
		for i := range 8 {
			names = append(names, fmt.Sprint(i))
			l.join(t.Context(), names[i], c)
			l.sleep(time.Duration(i+1) * time.Second)
		}
		l.passed(t, names[:2]...)
		setLimit(t, l.Limiter, "other", project.Limit{RequestsPerMinute: 1000})
		synctest.Wait()
		l.passed(t, names[:2]...)
		setLimit(t, l.Limiter, "p", project.Limit{RequestsPerMinute: 5})
		synctest.Wait()
		l.passed(t, names[:5]...) // at 0s, 1s, and three at 8s
		setLimit(t, l.Limiter, "p", project.Limit{RequestsPerMinute: 1})
		l.sleep(time.Minute + 7*time.Second)
		l.passed(t, names[:5]...)
		l.sleep(time.Minute + 8*time.Second)
		l.passed(t, names[:6]...)
		l.sleep(2*time.Minute + 7*time.Second)
		l.passed(t, names[:6]...)
		l.sleep(2*time.Minute + 8*time.Second)
		l.passed(t, names[:7]...)
		setLimit(t, l.Limiter, "p", project.Limit{})
		synctest.Wait()
		l.passed(t, names...)
	})
}

// Who waits for what will never be, since the limit has become smaller, is told so.
func TestSetLimitTooSmallForWhoWaits(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{TokensPerMinute: 10}}, func(t *testing.T, l *line, c project.Call) {
		c.Estimated = 10
		l.join(t.Context(), "a", c)
		l.join(t.Context(), "b", c)
		l.sleep(time.Second)
		setLimit(t, l.Limiter, "p", project.Limit{TokensPerMinute: 9})
		synctest.Wait()
		l.failed(t, "b", time.Second, project.ErrNever)
	})
}

// A reset lets those who wait pass at once.
func TestResetReachesThoseWhoWait(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerDay: 2}}, func(t *testing.T, l *line, c project.Call) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			l.join(t.Context(), name, c)
		}
		l.sleep(time.Second)
		if err := l.Reset(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		l.passed(t, "a", "b", "c", "d")
		l.sleep(24*time.Hour + time.Second)
		l.passed(t, "a", "b", "c", "d", "e")
	})
}

func TestSetLimits(t *testing.T) {
	first := map[string]project.Limit{"a": {RequestsPerMinute: 1}}
	l := newLimiter(t, project.Config{Limits: first})
	more := map[string]project.Limit{"a": {RequestsPerHour: 2}, "b": {TokensPerDay: 3, Weight: 4}}
	if err := l.SetLimits(more); err != nil || !maps.Equal(l.Limits(), more) {
		t.Errorf("%v, %v", l.Limits(), err)
	}
	if err := l.SetLimits(map[string]project.Limit{"a": {}, "c": {}, "d": {Weight: -1}}); err == nil || !maps.Equal(l.Limits(), more) {
		t.Errorf("%v, %v", l.Limits(), err)
	}
	if err := l.SetLimits(nil); err != nil || !maps.Equal(l.Limits(), more) {
		t.Errorf("%v, %v", l.Limits(), err)
	}
	if l.Limit("c") != *project.DefaultLimit {
		t.Errorf("%+v", l.Limit("c"))
	}
}

// Limits may be set while calls are made: each call goes by one of them.
func TestSetLimitMeanwhile(t *testing.T) {
	l := limited(t, project.Limit{})
	few, many := project.Limit{RequestsPerMinute: 50, TokensPerHour: 1 << 40}, project.Limit{RequestsPerHour: 60, RequestsPerDay: 1 << 40}
	var all sync.WaitGroup
	var mu sync.Mutex
	passed := map[string]int{}
	setLimit(t, l, "p", few)
	for worker := range 8 {
		id := []string{"p", "q"}[worker%2]
		all.Go(func() {
			for i := range 300 {
				c := project.Call{Project: id, Estimated: i % 2}
				d := spend(t, l, c)
				res, taken, err := l.Take(t.Context(), c)
				for _, d := range []project.Decision{d, taken} {
					for _, s := range d.Windows() {
						if s.Window == nil || s.RetryAfter < 0 || d.Allowed && s.RetryAfter > 0 {
							t.Errorf("%+v, %v", s, err)
						}
					}
				}
				mu.Lock()
				if d.Allowed {
					passed[id]++
				}
				if res != nil {
					passed[id]++
				}
				mu.Unlock()
			}
		})
		all.Go(func() {
			for i := range 300 {
				l.SetLimits(map[string]project.Limit{"p": []project.Limit{few, many}[i%2], fmt.Sprint(i): few})
				l.Limits()
			}
		})
	}
	all.Wait()
	if passed["p"] > 60 || passed["p"] < 50 || passed["q"] != 4*2*300 {
		t.Errorf("%v have passed; p may have 50 or 60, and q any number", passed)
	}
}

// A project whose limit is unset has the default one, and those of it who wait go by
// that at once.
func TestUnsetLimit(t *testing.T) {
	cfg := project.Config{Default: &project.Limit{RequestsPerMinute: 3}, Limits: map[string]project.Limit{"p": {RequestsPerMinute: 1}, "q": {RequestsPerDay: 1}}}
	inLine(t, cfg, func(t *testing.T, l *line, c project.Call) {
		for _, name := range []string{"a", "b", "c", "d"} {
			l.join(t.Context(), name, c)
		}
		l.sleep(time.Second)
		l.passed(t, "a")
		for range 2 { // of what is not set nothing is left to do
			if err := l.UnsetLimit("p"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			l.passed(t, "a", "b", "c")
		}
		if want := map[string]project.Limit{"q": {RequestsPerDay: 1}}; l.Limit("p") != *cfg.Default || !maps.Equal(l.Limits(), want) {
			t.Errorf("%+v, %v", l.Limit("p"), l.Limits())
		}
		l.sleep(time.Minute)
		l.passed(t, "a", "b", "c", "d")
		if err := l.UnsetLimit("no id"); !errors.Is(err, project.ErrInvalid) {
			t.Errorf("%v", err)
		}
	})
}
