//go:build unix

package scenes

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// slotCost returns the CPU time of 2,000 calls of so many projects that share ten slots. All calls come at once.
func slotCost(t *testing.T, projects int) (cpu time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		rl, err := ratelimit.NewWithConfig(ratelimit.Config{FilePath: "none", Quotas: map[string]ratelimit.ModelQuota{"m": {MaxConcurrent: 10}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rl.NewProjects(project.Config{Default: &project.Limit{}}); err != nil {
			t.Fatal(err)
		}
		before := cpuTime(t)
		var group sync.WaitGroup
		for i := range 2000 {
			group.Go(func() {
				res, _, err := rl.AcquireCall(context.Background(), ratelimit.Call{Model: "m", Project: fmt.Sprint("p", i%projects)})
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second)
				res.Commit(1, 1)
			})
		}
		group.Wait()
		cpu = cpuTime(t) - before
	})
	return cpu
}

// What a call for a slot costs does not grow with the number of projects that wait. When each denial looked at all of
// them, twice as many took seven times as long. The least of three counts, since other programs only make it more, and
// four times as many projects take up to 1.8 times as long for their own memory, hence the factor of three.
func TestSlotsCostTheSameForManyProjects(t *testing.T) {
	slotCost(t, 1000) // warms up
	few, many := slotCost(t, 500), slotCost(t, 2000)
	for range 2 {
		few, many = min(few, slotCost(t, 500)), min(many, slotCost(t, 2000))
	}
	t.Logf("2,000 calls of 500 and of 2,000 projects take %v and %v", few, many)
	if many > 3*few {
		t.Errorf("2,000 calls of 2,000 projects take %v, and of 500 %v: want less than three times as much", many, few)
	}
}

// cpuTime returns the CPU time of this process.
func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
