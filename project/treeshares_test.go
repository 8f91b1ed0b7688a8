package project_test

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// load is projects whose workers call again and again.
type load struct {
	t      *testing.T
	l      *project.Limiter
	ctx    context.Context
	since  time.Time // what was used before does not count
	tokens int       // of each call
	used   map[string]*atomic.Int64
}

// newLoad returns a load that calls for so many minutes and a half, of which one and a half do not count:
// the limits come back in between. At the ends of what counts a share may differ by some calls, which come at once: over
// six minutes these are less than a twentieth.
func newLoad(t *testing.T, l *project.Limiter, minutes, tokens int) *load {
	ctx, stop := testkit.WithHiddenTimeout(t.Context(), time.Duration(minutes)*time.Minute+30*time.Second)
	t.Cleanup(stop)
	return &load{t, l, ctx, time.Now().Add(90 * time.Second), tokens, map[string]*atomic.Int64{}}
}

// call lets workers of a project call after a delay, with a pause after each call.
func (c *load) call(id string, workers int, delay, pause time.Duration) {
	used := new(atomic.Int64)
	c.used[id] = used
	for range workers {
		go func() {
			time.Sleep(delay)
			for {
				res, _, err := c.l.Acquire(c.ctx, project.Call{Project: id, Estimated: c.tokens})
				if err != nil {
					return
				}
				if !time.Now().Before(c.since) {
					used.Add(int64(c.tokens))
				}
				res.Commit(c.tokens, 0)
				time.Sleep(pause)
			}
		}()
	}
}

// want waits until the load is over, and wants each project to have had a part of a limit.
func (c *load) want(limit int64, parts map[string]float64) {
	c.t.Helper()
	<-c.ctx.Done()
	synctest.Wait()
	all := float64(limit) * time.Since(c.since).Minutes()
	for id, want := range parts {
		if got := float64(c.used[id].Load()) / all; math.Abs(got-want) > .05 {
			c.t.Errorf("%s has had %.3f of the limit; want %.3f", id, got, want)
		}
	}
}

// Projects below another share its limits by weight, however many workers each has, at two levels and
// at three.
func TestSiblingsShareTheLimitAboveThem(t *testing.T) {
	for kind, on := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, on(t, project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{
					"acme":          {TokensPerMinute: 120_000},
					"acme/search":   {Weight: 3},
					"acme/chat":     {Weight: 1},
					"acme/search/a": {Weight: 2},
				}}))
				c := newLoad(t, l, 10, 1000)
				c.call("acme/search/a", 3, 0, 0)
				c.call("acme/search/b", 8, 0, 0)
				c.call("acme/chat", 20, 0, 0)
				c.want(120_000, map[string]float64{"acme/search/a": .5, "acme/search/b": .25, "acme/chat": .25})
			})
		})
	}
}

// A project that calls less than its share leaves the rest to its siblings, and one that comes late has its
// share within a minute, although the hog was alone until then.
func TestSiblingsLendAndComeLate(t *testing.T) {
	for kind, on := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{"acme": {RequestsPerMinute: 120}}}
				l := newLimiter(t, on(t, limits))
				c := newLoad(t, l, 10, 1)
				c.call("acme/hog", 20, 0, 0)
				c.call("acme/polite", 1, 0, 5*time.Second) // 12 a minute
				c.want(120, map[string]float64{"acme/hog": .9, "acme/polite": .1})

				l = newLimiter(t, on(t, limits))
				c = newLoad(t, l, 10, 1)
				c.since = c.since.Add(3 * time.Minute) // shares hold after the first window
				c.call("acme/hog", 20, 0, 0)
				c.call("acme/late", 4, 2*time.Minute, 0)
				c.want(120, map[string]float64{"acme/hog": .5, "acme/late": .5})
			})
		})
	}
}

// A lone project has everything, unless its MaxShare is less.
func TestMaxShareOfTheLimitAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{
			"acme": {TokensPerMinute: 100_000}, "acme/capped": {MaxShare: 30}, "beta": {TokensPerMinute: 100_000},
		}})
		c := newLoad(t, l, 10, 1000)
		c.call("acme/capped", 5, 0, 0)
		c.call("beta/x", 5, 0, 0)
		c.want(100_000, map[string]float64{"acme/capped": .3, "beta/x": 1})
		_, d, err := l.Take(t.Context(), project.Call{Project: "acme/capped", Estimated: 31_000})
		if want := `more than the 30,000 tokens a minute of project "acme" that project "acme/capped" may use at most`; err != nil || d.RetryAfter != project.Never || d.Reason() != want {
			t.Errorf("%v, %v: %s", err, d.RetryAfter, d.Reason())
		}
	})
}

// Projects of a higher priority have what they want of the limit above them, and MinShare is kept.
func TestPrioritiesInTheLimitAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{
			"acme": {TokensPerMinute: 100_000}, "acme/high": {Priority: 1}, "acme/low": {MinShare: 20}, "acme/none": {},
		}})
		c := newLoad(t, l, 10, 1000)
		c.call("acme/low", 10, 0, 0)
		c.call("acme/none", 10, 0, 0)
		c.call("acme/high", 10, 0, 0)
		c.want(100_000, map[string]float64{"acme/high": .8, "acme/low": .2, "acme/none": 0})
	})
}

// A denial says whose limit is divided, and what the project has of it.
func TestDenialByAShareOfTheLimitAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{
			"acme": {TokensPerMinute: 100_000}, "acme/search": {Weight: 3},
		}})
		for i := range 40 {
			_, d, err := l.Take(t.Context(), project.Call{Project: "acme/search", Estimated: 1000})
			if err != nil || !d.Allowed {
				t.Fatal(i, err, d.Reason())
			}
			_, d, err = l.Take(t.Context(), project.Call{Project: "acme/chat", Estimated: 1000})
			switch {
			case err != nil || d.Allowed != (i < 25):
				t.Fatal(i, err, d.Reason())
			case d.Allowed:
			case d.Owner != "acme" || d.Limit != "tokens_per_minute_share" || d.Share.Max != 25_000:
				t.Fatalf("%+v", d.Share)
			case !strings.HasPrefix(d.Reason(), `project "acme/chat" has a share of 25,000 of the 100,000 tokens a minute of project "acme" while 2 projects share them, and has used 25,000: try again in `):
				t.Fatal(d.Reason())
			}
		}
	})
}
