package call

import (
	"sync"
	"time"
)

const (
	// maxFreeFailures is how many calls of a project that the provider has failed to answer cost nothing
	// in a minute. A client that provokes errors after the model has worked pays for all others.
	maxFreeFailures = 60

	// maxFailing is how many projects may have such calls in a minute. The names of projects may come
	// from requests.
	maxFailing = 10_000
)

// freeFailures counts the calls of each project that have failed and cost nothing, in the present
// minute. The zero freeFailures is ready to use, by any number of goroutines.
type freeFailures struct {
	mu    sync.Mutex
	began time.Time      // the beginning of the minute
	count map[string]int // by project
}

// take reports whether one more failed call of a project costs nothing, and counts it.
func (f *freeFailures) take(project string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil || now.Sub(f.began) >= time.Minute {
		f.began, f.count = now, map[string]int{}
	}
	n := f.count[project]
	if n == maxFreeFailures || n == 0 && len(f.count) == maxFailing {
		return false
	}
	f.count[project] = n + 1
	return true
}
