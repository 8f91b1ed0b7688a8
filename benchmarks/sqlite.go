package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

const (
	processes = 4

	nameCombined  = "calls combined, 64 goroutines"
	nameSeparate  = "a transaction a call, 64 goroutines"
	nameProcesses = "4 processes, 64 goroutines each"
)

// sqlite compares decisions on a SQLite file as they come, many to a transaction, with one
// transaction for each, and with four processes that share the file.
func sqlite(b *bench) (result, error) {
	dir, err := os.MkdirTemp("", "benchmarks")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	rates := map[string][]float64{}
	slice := max(5*b.slice, 50*time.Millisecond)
	for round := range b.rounds {
		for _, how := range []struct {
			name    string
			measure func(path string, d time.Duration) (float64, error)
		}{
			{nameCombined, func(path string, d time.Duration) (float64, error) { return acquireFor(path, d, false) }},
			{nameSeparate, func(path string, d time.Duration) (float64, error) { return acquireFor(path, d, true) }},
			{nameProcesses, inProcesses},
		} {
			b.step(fmt.Sprintf("%s, round %d of %d", how.name, round+1, b.rounds))
			rate, err := how.measure(filepath.Join(dir, fmt.Sprintf("%s%d.db", how.name, round)), slice)
			if err != nil {
				return result{}, fmt.Errorf("%s: %w", how.name, err)
			}
			rates[how.name] = append(rates[how.name], rate)
		}
	}
	var rows []row
	for name, kind := range map[string]kind{nameCombined: ours, nameSeparate: peer, nameProcesses: ours} {
		rows = append(rows, row{name: name, kind: kind, value: 1e9 / median(rates[name])})
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	title := fmt.Sprintf("Acquire on a SQLite file, RPM, TPM and RPD; median of %d rounds of %v", b.rounds, slice)
	combined := named(rows, nameCombined)
	return result{
		reports: []report{newCostReport("sqlite", title, "ns", rows)},
		checks: []check{
			faster("sqlite", combined, named(rows, nameSeparate), 4),
			costsAtMost("sqlite", named(rows, nameProcesses), combined, 2),
		},
	}, nil
}

// acquireFor returns how many decisions a second callers get on the file at path. One at a time,
// no transaction carries more than one.
func acquireFor(path string, d time.Duration, oneAtATime bool) (float64, error) {
	n, elapsed, err := countFor(path, d, oneAtATime)
	if err != nil {
		return 0, err
	}
	return float64(n) / elapsed.Seconds(), admitted(path, n)
}

func openAmple(path string) (*ratelimit.RateLimiter, error) {
	return ratelimit.NewWithSQLiteConfig(path, ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{model: ample}})
}

// countFor returns how many were admitted, in how long.
func countFor(path string, d time.Duration, oneAtATime bool) (int64, time.Duration, error) {
	l, err := openAmple(path)
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	var turn sync.Mutex
	done, err := crowd(callers, func(int) error {
		if oneAtATime {
			turn.Lock()
			defer turn.Unlock()
		}
		_, err := l.Acquire(context.Background(), model, 10)
		return err
	}, d)
	return int64(done.decisions), done.elapsed, err
}

// admitted checks that the file knows of exactly n.
func admitted(path string, n int64) error {
	l, err := ratelimit.NewWithSQLite(path)
	if err != nil {
		return err
	}
	defer l.Close()
	if got := int64(l.Stats(model).RPD); got != n {
		return fmt.Errorf("%d were admitted, and the file knows of %d", n, got)
	}
	return nil
}

// childOf names the file that a process shares with others, and childFor for how long.
const (
	childOf  = "BENCHMARKS_CHILD_OF"
	childFor = "BENCHMARKS_CHILD_FOR"
)

// child is what such a process does in place of everything else. It reports whether it is one.
func child() bool {
	if name := os.Getenv(childProxy); name != "" {
		if err := proxyChild(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return true
	}
	path := os.Getenv(childOf)
	if path == "" {
		return false
	}
	d, err := time.ParseDuration(os.Getenv(childFor))
	if err == nil {
		var n int64
		n, _, err = countFor(path, d, false)
		fmt.Println(n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// inProcesses returns how many decisions a second several processes get together.
func inProcesses(path string, d time.Duration) (float64, error) {
	l, err := openAmple(path) // makes the file
	if err != nil {
		return 0, err
	}
	l.Close()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	var (
		wg     sync.WaitGroup
		total  atomic.Int64
		faults [processes]error
	)
	for i := range processes {
		wg.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), childOf+"="+path, childFor+"="+d.String())
			out, err := cmd.Output()
			if err == nil {
				var n int64
				n, err = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
				total.Add(n)
			}
			faults[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(faults[:]...); err != nil {
		return 0, err
	}
	return float64(total.Load()) / d.Seconds(), admitted(path, total.Load())
}
