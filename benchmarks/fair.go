package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

const (
	fairSlices = 30 // a run is this many slices: 1.8 s unless -time says otherwise
	fairWithin = 0.05

	places   = 4                      // calls that the model takes at a time
	waitEach = 4 * places             // callers of a project: some of them always wait
	callTime = 200 * time.Microsecond // how long a call keeps its place
)

// rivals are the projects that want the same model, and their weights.
var rivals = [...]struct {
	id     string
	weight int
}{{"weight-3", 3}, {"weight-1", 1}}

// shares is how many calls each of the rivals was granted.
type shares [len(rivals)]int64

// ratio is that of the first to the second.
func (s shares) ratio() float64 { return float64(s[0]) / float64(s[1]) }

func (s shares) sub(t shares) shares {
	for i := range s {
		s[i] -= t[i]
	}
	return s
}

// fair lets two projects of different weights compete for a model that takes few calls at a time.
func fair(b *bench) (result, error) {
	const name = "project/fair"
	b.step("waiting")
	rl, err := newRivals()
	if err != nil {
		return result{}, err
	}
	defer rl.Close()
	took := fairSlices * b.slice
	got, err := compete(rl, b.slice, took)
	if err != nil {
		return result{}, err
	}
	rep := report{
		name:    name,
		title:   fmt.Sprintf("Acquire by %d callers of each project, %d calls of the model at a time; one run of %v", waitEach, places, took),
		columns: []string{"calls", "% of all"},
	}
	for i, r := range rivals {
		part := 100 * float64(got[i]) / float64(got[0]+got[1])
		rep.rows = append(rep.rows, row{r.id, ours, part, []string{fmt.Sprint(got[i]), fmt.Sprintf("%.2f", part)}})
	}
	want := float64(rivals[0].weight) / float64(rivals[1].weight)
	return result{reports: []report{rep}, checks: []check{{
		figure:   name + ": calls of weight 3 for one of weight 1",
		required: fmt.Sprintf("%.2f to %.2f", want*(1-fairWithin), want*(1+fairWithin)),
		measured: fmt.Sprintf("%.3f", got.ratio()),
		pass:     math.Abs(got.ratio()/want-1) <= fairWithin,
	}}}, nil
}

// compete returns what the rivals are granted in d, after they have competed for warmUp already.
func compete(rl *ratelimit.RateLimiter, warmUp, d time.Duration) (shares, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	var (
		counts [len(rivals)]atomic.Int64
		wg     sync.WaitGroup
	)
	for i, r := range rivals {
		for range waitEach {
			wg.Go(func() {
				if err := callInLoop(ctx, rl, r.id, &counts[i]); err != nil {
					cancel(err)
				}
			})
		}
	}
	look := func(after time.Duration) (s shares) {
		select {
		case <-time.After(after):
		case <-ctx.Done(): // somebody has failed
		}
		for i := range s {
			s[i] = counts[i].Load()
		}
		return s
	}
	before := look(warmUp)
	got := look(d).sub(before)
	cancel(nil)
	wg.Wait()
	if err := context.Cause(ctx); err != context.Canceled {
		return shares{}, err
	}
	return got, nil
}

func newRivals() (*ratelimit.RateLimiter, error) {
	models, err := ratelimit.NewWithConfig(ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{model: {MaxConcurrent: places}}})
	if err != nil {
		return nil, err
	}
	limits := map[string]project.Limit{}
	for _, r := range rivals {
		limits[r.id] = project.Limit{Weight: r.weight}
	}
	_, err = models.NewProjects(project.Config{Default: &project.Limit{}, Limits: limits})
	return models, err
}

// callInLoop calls the model, one call after the other, until ctx ends, and counts what was granted.
func callInLoop(ctx context.Context, rl *ratelimit.RateLimiter, id string, granted *atomic.Int64) error {
	for {
		r, _, err := rl.AcquireCall(ctx, ratelimit.Call{Project: id, Model: model, Estimated: 1000})
		if ctx.Err() != nil {
			r.Cancel()
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		granted.Add(1)
		time.Sleep(callTime)
		r.Commit(900, 100)
	}
}
