package project_test

import (
	"context"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// openRedis returns a store in Redis, for which it waits as long as a busy machine may
// take.
func openRedis(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(redisstore.Config{URL: url, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// eventually wants something to become so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !so(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("not yet: %s", what)
		}
	}
}

// do has a server carry out a command.
func do(t testing.TB, s *redistest.Server, args ...string) any {
	t.Helper()
	answer, err := s.Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// Histories that are over long before anything leaves its window: the clock is the
// server's, so of times nothing is wanted but that they make sense.
func TestRedisHistories(t *testing.T) {
	server := redistest.New(t)
	s := openRedis(t, server.URL())
	doing := []string{"spend", "spend", "spend", "take", "take", "commit", "cancel", "peek", "set", "unset", "reset"}
	sensible := func(got, want answer) bool {
		for i, s := range got.windows {
			if s.reset < 0 || s.reset > 30*24*time.Hour || s.retry < 0 || s.retry > 30*24*time.Hour && s.retry != project.Never || i >= len(want.windows) {
				return false
			}
			for _, d := range []struct{ got, want *time.Duration }{{&got.windows[i].retry, &want.windows[i].retry}, {&got.windows[i].reset, &want.windows[i].reset}} {
				if *d.got != project.Never && (*d.got > 0) == (*d.want > 0) {
					*d.got = *d.want
				}
			}
		}
		if got.retry != project.Never && (got.retry > 0) == (want.retry > 0) {
			got.retry, got.by = want.retry, want.by
		}
		return exactly(got, want)
	}
	rapid.Check(t, func(rt *rapid.T) {
		shape := project.Limit{
			RequestsPerHour: rapid.IntRange(0, 1).Draw(rt, "rph"), RequestsPerDay: rapid.IntRange(0, 1).Draw(rt, "rpd"),
			TokensPerHour: rapid.IntRange(0, 1).Draw(rt, "tph"), TokensPerDay: rapid.IntRange(0, 1).Draw(rt, "tpd"),
			TokensPerMonth: rapid.IntRange(0, 1).Draw(rt, "tokens a month"), MaxConcurrent: rapid.IntRange(0, 1).Draw(rt, "at a time"),
		}
		limits := map[string]project.Limit{}
		for _, id := range ids {
			limits[id] = counts(rt, shape, 6)
		}
		all := rapid.SliceOfN(steps(shape, doing), 1, 30).Draw(rt, "history")
		usual := counts(rt, shape, 6)
		l, err := project.NewWithConfig(project.Config{Store: s, Default: &usual})
		if err != nil {
			rt.Fatal(err)
		}
		defer l.Close()
		if err := l.SetLimits(limits); err != nil {
			rt.Fatal(err)
		}
		for _, id := range ids {
			if err := l.Reset(context.Background(), id); err != nil {
				rt.Fatal(err)
			}
		}
		if differs := play(l, func() int64 { return 0 }, all, sensible); differs != "" {
			rt.Fatal(differs)
		}
	})
}

// A limit that is set on one machine reaches the others, there to stay.
func TestRedisSetLimit(t *testing.T) {
	url := redistest.New(t).URL()
	cfg := func() project.Config {
		return project.Config{Store: openRedis(t, url), Limits: map[string]project.Limit{"p": {RequestsPerHour: 1}, "own": {RequestsPerHour: 5}}}
	}
	a, b := newLimiter(t, cfg()), newLimiter(t, cfg())
	use(t, a, "p", 1)
	waits := make(chan error, 1)
	go func() {
		_, _, err := b.Acquire(t.Context(), project.Call{Project: "p"})
		waits <- err
	}()
	for d := (project.Decision{Allowed: true}); d.Allowed || d.RetryAfter == 0; {
		d = spend(t, b, project.Call{Project: "p"}) // until it is in line
	}
	set := map[string]project.Limit{"p": {RequestsPerHour: 2, Weight: 3}, "a/b %": {}}
	if err := a.SetLimits(set); err == nil {
		t.Error("an id with a space was set")
	}
	delete(set, "a/b %")
	set["a/b%"] = project.Limit{TokensPerDay: 7}
	if err := a.SetLimits(set); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil { // the other machine lets it pass
		t.Errorf("who waits on the other machine: %v", err)
	}
	want := maps.Clone(set)
	want["own"] = project.Limit{RequestsPerHour: 5}
	eventually(t, "the other machine follows", func() bool { return maps.Equal(b.Limits(), want) })
	if c := newLimiter(t, cfg()); !maps.Equal(c.Limits(), want) {
		t.Errorf("who comes later has %v; want %v", c.Limits(), want)
	}
}

// A limit that is unset on one machine is unset on the others, and for who comes later.
func TestRedisUnsetLimit(t *testing.T) {
	url := redistest.New(t).URL()
	a, b := newLimiter(t, project.Config{Store: openRedis(t, url)}), newLimiter(t, project.Config{Store: openRedis(t, url)})
	setLimit(t, a, "p", project.Limit{RequestsPerHour: 1})
	setLimit(t, a, "q", project.Limit{RequestsPerHour: 2})
	eventually(t, "the other machine follows", func() bool { return len(b.Limits()) == 2 })
	for range 2 {
		if err := a.UnsetLimit("p"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the other machine follows again", func() bool { return b.Limit("p") == *project.DefaultLimit })
	want := map[string]project.Limit{"q": {RequestsPerHour: 2}}
	for _, l := range []*project.Limiter{a, b, newLimiter(t, project.Config{Store: openRedis(t, url)})} {
		if got := l.Limits(); !maps.Equal(got, want) {
			t.Errorf("%v; want %v", got, want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Once SetLimit has returned, the limit stays, although the limiter may be about to
// look at what others have set.
func TestRedisSetLimitStays(t *testing.T) {
	s := openRedis(t, redistest.New(t).URL())
	for i := range 100 {
		l, err := project.NewWithConfig(project.Config{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			want := project.Limit{RequestsPerMinute: 1 + 3*i + k}
			setLimit(t, l, "p", want)
			for range 20 {
				if got := l.Limit("p"); got != want {
					t.Fatalf("%d.%d: %+v; want %+v", i, k, got, want)
				}
				runtime.Gosched()
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Settings that are not understood are left out, and Close says so; quotas are none
// of a project's business, and the other way round.
func TestRedisSettings(t *testing.T) {
	server := redistest.New(t)
	s := openRedis(t, server.URL())
	l := newLimiter(t, project.Config{Store: s})
	good := project.Limit{RequestsPerMinute: 3}
	for _, each := range []struct{ field, value, says string }{
		{"project/newer", `{"requests_per_week":5}`, `"project/newer" is not used: `},
		{"project/negative", `{"requests_per_minute":-5}`, "RequestsPerMinute is -5"},
		{"project/text", "much", `"much"`},
		{"project/two", `{} {}`, "it must be one value"},
		{"project/", `{}`, "the project id is empty"},
		{"project/a b", `{}`, "no spaces"},
		{"project/" + strings.Repeat("a", 200), `{}`, "200 bytes"},
	} {
		do(t, server, "DEL", "ratelimit:settings")
		do(t, server, "HSET", "ratelimit:settings", each.field, each.value, "project/good", `{"requests_per_minute":3}`, "quota/m", `{"max_rpm":9}`, "strange", "?")
		late, err := project.NewWithConfig(project.Config{Store: s})
		if err != nil {
			t.Fatalf("%s: %v", each.field, err)
		}
		if got := late.Limits(); !maps.Equal(got, map[string]project.Limit{"good": good}) {
			t.Errorf("%s: %v", each.field, got)
		}
		if err := late.Close(); err == nil || !strings.Contains(err.Error(), each.says) || strings.Contains(err.Error(), "quota/") || !strings.HasPrefix(err.Error(), "ratelimit: ") {
			t.Errorf("%s: %v; want %s", each.field, err, each.says)
		}
		if err := late.Close(); err != nil {
			t.Errorf("said twice: %v", err)
		}
	}
	do(t, server, "DEL", "ratelimit:settings")
	if err := l.SetLimit("m", good); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil && !strings.Contains(err.Error(), "is not used") { // of those above
		t.Error(err)
	}
}

// Where the limit cannot be written, it is not set here either.
func TestRedisSetLimitFails(t *testing.T) {
	server := redistest.New(t)
	l := newLimiter(t, project.Config{Store: openRedisFor(t, server.URL(), 100*time.Millisecond)})
	server.Kill()
	if err := l.SetLimit("p", project.Limit{RequestsPerMinute: 1}); err == nil || len(l.Limits()) != 0 {
		t.Errorf("%v, %v", err, l.Limits())
	}
	d, err := l.Spend(t.Context(), project.Call{Project: "p"})
	if err == nil || d.Allowed {
		t.Errorf("%+v, %v; want an error of the store", d, err)
	}
}

func openRedisFor(t testing.TB, url string, timeout time.Duration) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(redisstore.Config{URL: url, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
