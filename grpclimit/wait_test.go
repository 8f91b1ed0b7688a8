package grpclimit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// inMemory returns a function that calls a handler behind the interceptor, as project p.
func inMemory(limiter *project.Limiter, options ...Option) func(context.Context) error {
	intercept := UnaryServerInterceptor(limiter, options...)
	return func(ctx context.Context) error {
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs(MetadataProjectID, "p"))
		_, err := intercept(ctx, nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { return nil, nil })
		return err
	}
}

// waiters call handlers of which one call a minute may pass, behind each of the interceptors.
var waiters = map[string]func(t *testing.T, options ...Option) func(context.Context) error{
	"requests_per_minute": func(t *testing.T, options ...Option) func(context.Context) error {
		return inMemory(newLimiter(t, project.Limit{RequestsPerMinute: 1}), options...)
	},
	"1/min": func(_ *testing.T, options ...Option) func(context.Context) error {
		return inMemoryPlain(limit.NewLimiter(byMethod, limit.PerMinute(1)), options...)
	},
}

func TestWait(t *testing.T) {
	for limit, waiter := range waiters {
		t.Run(limit, func(t *testing.T) { testWait(t, limit, waiter) })
	}
}

func testWait(t *testing.T, limit string, waiter func(t *testing.T, options ...Option) func(context.Context) error) {
	for _, c := range []struct {
		name     string
		most     time.Duration
		deadline time.Duration // the call's
		code     codes.Code
		waits    time.Duration
	}{
		{"in time", 2 * time.Minute, time.Hour, codes.OK, time.Minute},
		{"too late", 59 * time.Second, time.Hour, codes.ResourceExhausted, 0},
		{"not at all", 0, time.Hour, codes.ResourceExhausted, 0},
		{"too late for the deadline", time.Hour, 30 * time.Second, codes.ResourceExhausted, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := waiter(t, Wait(c.most))
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				defer cancel()
				if err := call(ctx); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err := call(ctx)
				if waited := time.Since(began); status.Code(err) != c.code || waited != c.waits {
					t.Errorf("%v after %v", err, waited)
				}
				if want := `the limit "` + limit + `" lets the call pass in 1m0s, and its deadline is in 30s`; c.deadline < time.Minute && status.Convert(err).Message() != want {
					t.Errorf("%v, want %s", err, want)
				}
				if retry, _ := details(t, err); err != nil && retry.GetRetryDelay().AsDuration() != time.Minute {
					t.Errorf("%v", retry)
				}
			})
		})
	}
}

// The delay is exact: the call is denied a nanosecond before it, and passes after it.
func TestRetryDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := inMemory(newLimiter(t, project.Limit{RequestsPerMinute: 1}))
		if err := call(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12_345_678_901)
		retry, _ := details(t, call(t.Context()))
		time.Sleep(retry.GetRetryDelay().AsDuration() - time.Nanosecond)
		if err := call(t.Context()); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("too early: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if err := call(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A client that leaves is charged nothing: a minute after the first call, another one passes at once.
func TestClientLeaves(t *testing.T) {
	for limit, waiter := range waiters {
		t.Run(limit, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := waiter(t, Wait(time.Hour))
				if err := call(t.Context()); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				gone := make(chan error, 1)
				go func() { gone <- call(ctx) }()
				synctest.Wait()
				cancel()
				if err := <-gone; status.Code(err) != codes.Canceled {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				began := time.Now()
				if err := call(t.Context()); err != nil || time.Since(began) != 0 {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		})
	}
}

// A call that may not wait because too many do gets the limit that they wait for.
func TestTooManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := configured(t, project.Config{Default: &project.Limit{RequestsPerMinute: 1}, MaxWaiting: 1})
		call := inMemory(limiter, Wait(time.Hour))
		answers := make(chan error, 5)
		for range cap(answers) {
			go func() { answers <- call(t.Context()) }()
			synctest.Wait()
		}
		passed := 0
		for range cap(answers) {
			err := <-answers
			if err == nil {
				passed++
				continue
			}
			retry, failure := details(t, err)
			if status.Code(err) != codes.ResourceExhausted || retry.GetRetryDelay().AsDuration() <= 0 {
				t.Errorf("%v: %v", err, retry)
			}
			if v := failure.GetViolations(); len(v) != 1 || v[0].GetQuotaId() != "requests_per_minute" || v[0].GetSubject() != "project:p" {
				t.Errorf("%v", failure)
			}
		}
		if passed != 2 {
			t.Errorf("%d passed", passed)
		}
	})
}
