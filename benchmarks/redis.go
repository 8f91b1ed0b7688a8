package main

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

// withRedis is a scenario on a redis-server of its own, on the loopback interface. Without one
// installed there is nothing but a note that says so.
func withRedis(name, about string, run func(*bench, *redistest.Server) (result, error)) scenario {
	return scenario{name, about, func(b *bench) (result, error) {
		server, err := redistest.Start(redistest.Options{})
		if errors.Is(err, exec.ErrNotFound) {
			return result{notes: []string{name + ": skipped, redis-server is not installed: make deps installs it"}}, nil
		}
		if err != nil {
			return result{}, err
		}
		defer server.Close()
		had := b.freeCores()
		r, err := run(b, server)
		r.notes = append(r.notes, noise(name, had, cores)...)
		return r, err
	}}
}

// redisKeys measures decisions on so many keys by all who limit with Redis.
func redisKeys(name string, n int) scenario {
	about := fmt.Sprintf("one GCRA limit in Redis, %d keys, 64 goroutines", n)
	if n == 1 {
		about = "one GCRA limit in Redis, one key, 64 goroutines"
	}
	return withRedis(name, about, func(b *bench, server *redistest.Server) (result, error) {
		rows, err := redisTurns(b, server, redisContestants(), newKeys(n))
		if err != nil {
			return result{}, err
		}
		us := named(rows, nameRedisStore)
		return result{
			reports: []report{newRedisReport(b, name, about, rows)},
			checks:  []check{faster(name, us, bestPeer(rows), 1.5)},
		}, nil
	})
}

// redisSlice is a contestant's turn: the way to a server and back needs longer ones than memory does.
func (b *bench) redisSlice() time.Duration { return 4 * b.slice }

func (b *bench) redisMethod() string {
	return fmt.Sprintf("median of %d interleaved rounds of %v, after one to warm up", b.rounds, b.redisSlice())
}

// asked is what a crowd did in its turn, and how much of the server's time that took.
type asked struct {
	sample
	server time.Duration
}

func (a asked) clientCPU() float64 { return float64(a.cpu) / float64(a.decisions) }
func (a asked) serverCPU() float64 { return float64(a.server) / float64(a.decisions) }

// redisTurns lets contestants take turns on one server, and returns their median costs.
func redisTurns(b *bench, server *redistest.Server, contestants []redisContestant, keys []string) ([]row, error) {
	return redisTurnsBy(b, server, contestants, keys, asked.cost)
}

// redisTurnsBy is redisTurns for contestants that are compared by another figure.
func redisTurnsBy(b *bench, server *redistest.Server, contestants []redisContestant, keys []string, figure func(asked) float64) ([]row, error) {
	askers := make([]asker, len(contestants))
	for i, c := range contestants {
		var err error
		if askers[i], err = c.build(server.Addr); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		defer askers[i].close()
	}
	all := make([][]asked, len(contestants))
	for round := range 1 + b.rounds {
		for i, c := range contestants {
			b.step(fmt.Sprintf("%s, round %d of %d", c.name, round, b.rounds))
			turn, err := askFor(server, cmp.Or(c.callers, callers), askers[i].ask, keys, b.redisSlice())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			if round > 0 { // scripts are loaded, and connections made, in round 0
				all[i] = append(all[i], turn)
			}
		}
	}
	rows := make([]row, len(contestants))
	for i, c := range contestants {
		cost := medianOf(all[i], asked.cost)
		rows[i] = row{c.name, c.kind, medianOf(all[i], figure), []string{
			fmt.Sprintf("%.0f", 1e9/cost),
			fmt.Sprintf("%.0f", medianOf(all[i], asked.clientCPU)),
			fmt.Sprintf("%.0f", medianOf(all[i], asked.serverCPU)),
		}}
	}
	return rows, nil
}

func newRedisReport(b *bench, name, about string, rows []row) report {
	r := newCostReport(name, about+"; "+b.redisMethod(), "ns/decision", rows)
	r.columns = append(r.columns, "a second", "client CPU, ns", "server CPU, ns")
	return r
}

var errDenied = errors.New("it denied where all should be admitted: the comparison would be unfair")

// askFor lets a crowd ask about keys for d. All must be admitted.
func askFor(server *redistest.Server, callers int, ask func(key string) (bool, error), keys []string, d time.Duration) (asked, error) {
	before, err := serverCPU(server)
	if err != nil {
		return asked{}, err
	}
	s, err := crowd(callers, func(i int) error {
		allowed, err := ask(keys[i%len(keys)])
		if err == nil && !allowed {
			return errDenied
		}
		return err
	}, d)
	if err != nil {
		return asked{}, err
	}
	after, err := serverCPU(server)
	return asked{s, after - before}, err
}

// serverCPU is what the server has used, user and system.
func serverCPU(server *redistest.Server) (time.Duration, error) {
	answer, err := server.Do("INFO", "cpu")
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for line := range strings.Lines(fmt.Sprint(answer)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !slices.Contains([]string{"used_cpu_user", "used_cpu_sys"}, name) {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("redis-server's %s: %w", name, err)
		}
		sum += time.Duration(seconds * 1e9)
	}
	return sum, nil
}
