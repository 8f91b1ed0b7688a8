package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

const (
	nameLost   = "redisstore, Redis lost, Share"
	nameMemory = "store.Memory"
)

// redisLost measures how long a decision takes while Redis is lost and the node enforces its part
// of the limit, at the 99th percentile: nobody may wait for a server that is gone.
func redisLost(b *bench, server *redistest.Server) (result, error) {
	charges := []store.Charge{{Key: newKeys(1)[0], Limits: []limit.Limit{vast.limit()}, N: 1}}
	lost, err := loseRedis(server, charges)
	if err != nil {
		return result{}, err
	}
	defer lost.Close()
	stores := []struct {
		name string
		store.Store
	}{{nameMemory, store.NewMemory()}, {nameLost, lost}}

	p50s, p99s := make([][]float64, len(stores)), make([][]float64, len(stores))
	took := make([]time.Duration, 0, 1<<20) // for all turns: memory that is new would take time
	for round := range 1 + b.rounds {
		b.step(fmt.Sprintf("round %d of %d", round, b.rounds))
		for i, s := range stores {
			if took, err = timeTakes(took[:0], s, charges, b.slice); err != nil {
				return result{}, fmt.Errorf("%s: %w", s.name, err)
			}
			if round > 0 {
				p50s[i] = append(p50s[i], percentile(took, 50))
				p99s[i] = append(p99s[i], percentile(took, 99))
			}
		}
	}
	var rows []row
	for i, s := range stores {
		rows = append(rows, row{name: s.name, kind: ours, value: median(p99s[i]), cells: []string{fmt.Sprintf("%.1f", median(p50s[i]))}})
	}
	const name = "redis/lost"
	title := "Take of one GCRA limit, redis-server killed, one goroutine; " + b.method() + ", after one to warm up"
	r := newCostReport(name, title, "p99, ns", rows)
	r.columns = append(r.columns, "p50, ns")
	return result{
		reports: []report{r},
		checks:  []check{costsAtMost(name+", p99", named(rows, nameLost), named(rows, nameMemory), 5)},
	}, nil
}

// loseRedis returns a store that has used the server, which is killed then, and has noticed.
func loseRedis(server *redistest.Server, charges []store.Charge) (*redisstore.Store, error) {
	noticed := make(chan struct{})
	notice := sync.OnceFunc(func() { close(noticed) })
	s, err := openRedis(server.Addr, redisstore.Config{
		OnStoreLoss: redisstore.Share,
		OnEvent: func(e store.Event) {
			if e.Kind == store.Lost {
				notice()
			}
		},
	})
	if err != nil {
		return nil, err
	}
	err = take(s, charges)
	if err == nil {
		server.Kill()
		err = take(s, charges)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	<-noticed
	return s, nil
}

// take is a take that must be admitted.
func take(s store.Store, charges []store.Charge) error {
	_, decisions, err := s.Take(context.Background(), charges)
	if err == nil && !store.Allowed(decisions) {
		return errDenied
	}
	return err
}

// timeTakes appends to took how long each of the takes of d took, and sorts it.
func timeTakes(took []time.Duration, s store.Store, charges []store.Charge, d time.Duration) ([]time.Duration, error) {
	start := time.Now()
	for last := time.Duration(0); last < d; {
		if err := take(s, charges); err != nil {
			return nil, err
		}
		now := time.Since(start)
		took, last = append(took, now-last), now
	}
	slices.Sort(took)
	return took, nil
}

// percentile is of durations in order, in nanoseconds.
func percentile(sorted []time.Duration, p int) float64 {
	return float64(sorted[(len(sorted)-1)*p/100])
}
