package main

import (
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// cores is GOMAXPROCS for the whole run, and the number of goroutines in parallel scenarios.
	cores = 2
	// chunk is how many decisions are made between two looks at the clock.
	chunk = 1024
)

// sample is what one contestant did in one slice of time.
type sample struct {
	decisions, admitted int
	elapsed             time.Duration
	cpu                 time.Duration // of the whole process
}

// cost is in nanoseconds of wall time a decision, all goroutines together.
func (s sample) cost() float64 {
	return float64(s.elapsed.Nanoseconds()) / float64(s.decisions)
}

// cores is how many of them the process had.
func (s sample) cores() float64 { return s.cpu.Seconds() / s.elapsed.Seconds() }

// runner lets goroutines decide on keys, over and over, for d.
type runner func(decide loop, keys []string, d time.Duration) sample

// alone is one goroutine.
func alone(decide loop, keys []string, d time.Duration) sample {
	cpu := cpuTime()
	s := repeat(decide, keys, d)
	s.cpu = cpuTime() - cpu
	return s
}

// together is one goroutine a core, each with its own part of the keys.
func together(decide loop, keys []string, d time.Duration) sample {
	var (
		parts [cores]sample
		gate  = make(chan struct{})
		wg    sync.WaitGroup
	)
	for i := range parts {
		part := keys[i*len(keys)/cores : (i+1)*len(keys)/cores]
		wg.Go(func() {
			<-gate
			parts[i] = repeat(decide, part, d)
		})
	}
	cpu := cpuTime()
	close(gate)
	wg.Wait()

	sum := sample{cpu: cpuTime() - cpu}
	for _, s := range parts {
		sum.decisions += s.decisions
		sum.admitted += s.admitted
		sum.elapsed = max(sum.elapsed, s.elapsed)
	}
	return sum
}

func repeat(decide loop, keys []string, d time.Duration) sample {
	var s sample
	for start := time.Now(); ; {
		for part := range slices.Chunk(keys, chunk) {
			s.admitted += decide(part)
			s.decisions += len(part)
			s.elapsed = time.Since(start)
			if s.elapsed >= d {
				return s
			}
		}
	}
}

// callers is how many goroutines a crowd has unless a scenario says otherwise.
const callers = 64

// crowd has so many goroutines call do for d, and each of them once at least. i goes up from call to
// call, and begins elsewhere for each of them. All calls count as admitted; a fault ends the turn.
func crowd(callers int, do func(i int) error, d time.Duration) (sample, error) {
	var (
		wg     sync.WaitGroup
		over   atomic.Bool
		counts = make([]int, callers)
		faults = make([]error, callers)
	)
	cpu, start := cpuTime(), time.Now()
	defer time.AfterFunc(d, func() { over.Store(true) }).Stop()
	for g := range callers {
		wg.Go(func() {
			n := 0
			for n == 0 || !over.Load() {
				faults[g] = do(g*chunk + n)
				if faults[g] != nil {
					over.Store(true)
					return
				}
				n++
			}
			counts[g] = n
		})
	}
	wg.Wait()
	s := sample{elapsed: time.Since(start), cpu: cpuTime() - cpu}
	for g, n := range counts {
		if faults[g] != nil {
			return sample{}, faults[g]
		}
		s.decisions += n
	}
	s.admitted = s.decisions
	return s, nil
}

// cpuTime is what the process has used, user and system.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// freeCores is how many cores the machine lets us have right now.
func (b *bench) freeCores() float64 {
	return together(timeSince(plenty).decide, make([]string, chunk*cores), b.slice).cores()
}

// race collects samples of contestants that take turns.
type race struct {
	contestants []contestant
	samples     [][]sample // by contestant
}

func newRace(contestants []contestant) race {
	return race{contestants, make([][]sample, len(contestants))}
}

// add notes what contestant i did, unless it is not what the quota means.
func (r race) add(i int, q quota, s sample) error {
	r.samples[i] = append(r.samples[i], s)
	return q.fits(r.contestants[i], s)
}

// rows hold each contestant's median cost.
func (r race) rows() []row {
	rows := make([]row, len(r.contestants))
	for i, c := range r.contestants {
		rows[i] = row{name: c.name, kind: c.kind, value: medianOf(r.samples[i], sample.cost)}
	}
	return rows
}

// cores is how many the floors had, which never block: fewer than there should be means that
// something else was running.
func (r race) cores() float64 {
	var all []sample
	for i, c := range r.contestants {
		if c.kind == floor {
			all = append(all, r.samples[i]...)
		}
	}
	return medianOf(all, sample.cores)
}

func medianOf[T any](all []T, figure func(T) float64) float64 {
	var s []float64
	for _, v := range all {
		s = append(s, figure(v))
	}
	return median(s)
}

func median(s []float64) float64 {
	if len(s) == 0 {
		return 0
	}
	s = slices.Sorted(slices.Values(s))
	mid := len(s) / 2
	if len(s)%2 == 1 {
		return s[mid]
	}
	return (s[mid-1] + s[mid]) / 2
}
