package main

import (
	"context"
	"fmt"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/rate"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	xrate "golang.org/x/time/rate"
)

// freeWait measures Wait where there is nothing to wait for, with a context that can be cancelled.
func freeWait(b *bench) (result, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := turns(b, freeWaiters(ctx), plenty, alone, make([]string, chunk))
	if err != nil {
		return result{}, err
	}
	rows := r.rows()
	title := "Wait while there are tokens, one goroutine; " + b.method()
	rep := newCostReport("freewait", title, "ns/wait", rows)
	rep.columns = append(rep.columns, "faster than "+nameXTime)
	base := named(rows, nameXTime)
	for i, r := range rep.rows {
		rep.rows[i].cells = append(r.cells, fmt.Sprintf("%.2fx", base.value/r.value))
	}
	return result{reports: []report{rep}}, nil
}

func freeWaiters(ctx context.Context) []contestant {
	return []contestant{
		{name: nameRate, kind: ours, build: func(q quota) instance {
			l := rate.NewLimiter(rate.Limit(q.perSecond()), int(q.count))
			return instance{decide: func(keys []string) (n int) {
				for range keys {
					if l.Wait(ctx) == nil {
						n++
					}
				}
				return n
			}}
		}},
		{name: nameLimit, kind: ours, build: func(q quota) instance {
			l := limit.NewLimiter(itself, q.limit())
			return instance{decide: func(keys []string) (n int) {
				for _, key := range keys {
					if l.Wait(ctx, key) == nil {
						n++
					}
				}
				return n
			}}
		}},
		{name: nameXTime, kind: peer, build: func(q quota) instance {
			l := xrate.NewLimiter(xrate.Limit(q.perSecond()), int(q.count))
			return instance{decide: func(keys []string) (n int) {
				for range keys {
					if l.Wait(ctx) == nil {
						n++
					}
				}
				return n
			}}
		}},
		{name: nameUber, kind: peer, build: uberTake},
		{name: nameFailsafe + ", bursty", kind: peer, build: func(q quota) instance {
			l := ratelimiter.NewBursty[any](uint(q.count), q.period)
			return instance{decide: func(keys []string) (n int) {
				for range keys {
					if l.AcquirePermit(ctx) == nil {
						n++
					}
				}
				return n
			}}
		}},
	}
}
