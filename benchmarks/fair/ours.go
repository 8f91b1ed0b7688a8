package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

const model = "m"

// ours returns the calls of a load that this module admits, and those that wait at the end. It is
// driven by its public API, and must run in a bubble.
func ours(l *load) ([]*call, error) {
	models, err := newModels(l)
	if err != nil {
		return nil, err
	}
	defer models.Close()
	start := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(l.length()-1, cancel) // with a deadline, calls that cannot pass before it could fail early
	var (
		mu   sync.Mutex
		all  []*call
		errs error
		done sync.WaitGroup
	)
	// admit makes one call, unless it is too late for it, and reports whether it was admitted.
	admit := func(client, cost int) bool {
		if ctx.Err() != nil {
			return false
		}
		c := &call{client: client, cost: cost, arrived: time.Since(start), admitted: never}
		r, _, err := models.AcquireCall(ctx, ratelimit.Call{Project: l.clients[client].name, Model: model, Estimated: cost})
		mu.Lock()
		defer mu.Unlock()
		all = append(all, c)
		switch {
		case err == nil:
			c.admitted = time.Since(start)
			time.AfterFunc(l.answer, func() { r.Commit(cost, 0) })
		case !errors.Is(err, context.Canceled):
			errs = errors.Join(errs, fmt.Errorf("%s: %w", l.clients[client].name, err))
		}
		return err == nil
	}
	at := func(t time.Duration, f func()) {
		done.Go(func() {
			time.Sleep(t)
			f()
		})
	}
	workers := time.Duration(0)
	for i, c := range l.clients {
		for range c.workers {
			at(c.from+workers*stagger, func() {
				for admit(i, c.cost) {
					time.Sleep(l.answer + c.pause)
				}
			})
			workers++
		}
		for _, a := range c.arrivals {
			at(a.at, func() { admit(i, a.cost) })
		}
	}
	done.Wait()
	time.Sleep(l.answer)
	synctest.Wait()
	return all, errs
}

func newModels(l *load) (*ratelimit.RateLimiter, error) {
	quota := ratelimit.ModelQuota{MaxRPM: l.quota}
	if l.unit == "tokens" {
		quota = ratelimit.ModelQuota{MaxTPM: l.quota}
	}
	models, err := ratelimit.NewWithConfig(ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{model: quota}})
	if err != nil {
		return nil, err
	}
	limits := map[string]project.Limit{}
	for _, c := range l.clients {
		limits[c.name] = project.Limit{Weight: c.weight}
	}
	_, err = models.NewProjects(project.Config{Limits: limits, MaxWaiting: 1 << 20})
	return models, err
}
