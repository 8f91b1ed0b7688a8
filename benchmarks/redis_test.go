package main

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

func TestWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var stdout, stderr bytes.Buffer
	if status := Main([]string{"-run", "^redis/", "-plots", ""}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	for _, name := range []string{"hot", "1k", "calls"} {
		want := "redis/" + name + ": skipped, redis-server is not installed: make deps installs it"
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &stdout)
		}
	}
	if strings.Contains(stdout.String(), "REQUIRED") {
		t.Errorf("something was measured:\n%s", &stdout)
	}
}

func TestAskersMustAdmit(t *testing.T) {
	server := redistest.New(t)
	fault := errors.New("a fault")
	for _, test := range []struct {
		name    string
		allowed bool
		err     error
		want    error
	}{
		{"admits", true, nil, nil},
		{"denies", false, nil, errDenied},
		{"fails", false, fault, fault},
		{"fails and admits", true, fault, fault},
	} {
		t.Run(test.name, func(t *testing.T) {
			var calls atomic.Int64
			ask := func(string) (bool, error) {
				calls.Add(1)
				return test.allowed, test.err
			}
			turn, err := askFor(server, callers, ask, newKeys(3), time.Millisecond)
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if err == nil && int64(turn.decisions) != calls.Load() {
				t.Errorf("%d decisions of %d calls", turn.decisions, calls.Load())
			}
		})
	}
}

func TestEveryAskerLimits(t *testing.T) {
	server := redistest.New(t)
	for _, c := range redisContestants() {
		t.Run(c.name, func(t *testing.T) {
			a, err := c.build(server.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer a.close()
			before := must(server.Do("DBSIZE")).(int64)
			for _, key := range newKeys(3) {
				if allowed, err := a.ask(key); !allowed || err != nil {
					t.Errorf("%s: allowed %v, %v", key, allowed, err)
				}
			}
			if kept := must(server.Do("DBSIZE")).(int64) - before; kept < 3 {
				t.Errorf("the server has %d keys more, want 3: what was used is forgotten", kept)
			}
		})
	}
}

func TestCrowd(t *testing.T) {
	var calls atomic.Int64
	s, err := crowd(callers, func(int) error {
		calls.Add(1)
		return nil
	}, 0)
	if err != nil || int64(s.decisions) != calls.Load() || s.decisions < callers {
		t.Errorf("%d decisions of %d calls, %v, want %d or more", s.decisions, calls.Load(), err, callers)
	}
	fault := errors.New("a fault")
	if _, err := crowd(callers, func(i int) error {
		if i == 5*chunk+3 {
			return fault
		}
		return nil
	}, time.Hour); !errors.Is(err, fault) {
		t.Errorf("error %v, want %v", err, fault)
	}
}
