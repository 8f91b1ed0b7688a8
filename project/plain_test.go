package project_test

import (
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
)

// Calls that want no tokens wait neither for who waits for tokens nor behind it, and
// those that want some do not pass who waits for requests.
func TestPlainCallsBesideTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, project.Config{Default: &project.Limit{RequestsPerMinute: 5, TokensPerHour: 10}})
		ctx := t.Context()
		plain := project.Call{Project: "p", MaxWait: 2 * time.Minute}
		if _, _, err := l.Take(ctx, project.Call{Project: "p", Estimated: 10}); err != nil {
			t.Fatal(err)
		}
		passed := make(chan string, 10)
		acquire := func(name string, c project.Call) {
			go func() {
				if _, _, err := l.Acquire(ctx, c); err != nil {
					name += ": " + err.Error()
				}
				passed <- name
			}()
			synctest.Wait()
		}
		acquire("tokens", project.Call{Project: "p", Estimated: 10})
		for range 4 { // who waits for tokens does not hold them up
			if d, err := l.Spend(ctx, plain); err != nil || !d.Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		go func() {
			if d, err := l.Spend(ctx, plain); err != nil || !d.Allowed {
				t.Errorf("%+v, %v", d, err)
			}
			passed <- "plain"
		}()
		synctest.Wait()
		if d, err := l.Spend(ctx, project.Call{Project: "p"}); err != nil || d.Allowed || d.Exceeded != "minute" {
			t.Errorf("a newcomer beside one that waits for the minute: %+v, %v", d, err)
		}
		if _, d, err := l.Take(ctx, project.Call{Project: "p", Estimated: 1}); err != nil || d.Allowed {
			t.Errorf("one with tokens: %+v, %v", d, err)
		}
		start := time.Now()
		if name := <-passed; name != "plain" || time.Since(start) != time.Minute {
			t.Errorf("%s passes first, after %v; want plain, after a minute", name, time.Since(start))
		}
		if name := <-passed; name != "tokens" || time.Since(start) != time.Hour {
			t.Errorf("%s passes then, after %v; want tokens, after an hour", name, time.Since(start))
		}
	})
}
