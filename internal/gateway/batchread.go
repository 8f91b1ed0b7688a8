package gateway

import (
	"context"
	"sync"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// fileReads counts the files with calls of batches that are being read, by project. To read one costs the gateway
// far more than the client that names it.
type fileReads struct {
	mu     sync.Mutex
	of     map[string]int
	number int
}

const (
	maxReadAtOnce = 16 // files
	maxReadOfOne  = 2  // files of one project
)

// begin reports whether a file of a project may be read now. If so, end must follow.
func (f *fileReads) begin(project string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.number >= maxReadAtOnce || f.of[project] >= maxReadOfOne {
		return false
	}
	if f.of == nil {
		f.of = map[string]int{}
	}
	f.number++
	f.of[project]++
	return true
}

func (f *fileReads) end(project string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.number--
	f.of[project]--
	if f.of[project] == 0 {
		delete(f.of, project)
	}
}

// tooManyFiles refuses a batch while as many files are read as may be.
func tooManyFiles() *refusal {
	return retryLater("the files of other batches are being read: try again", Refused)
}

// batchCall returns the call that stands for a batch: its owners, and how long it may wait, without its amounts.
func (x *exchange) batchCall() project.Call {
	c := x.call.Call
	c.Batch, c.MaxWait = true, x.maxWait()
	return c
}

// checkLeft refuses a batch if its project, its key or its run has nothing left at all, and will not have while the
// batch may wait. It takes nothing.
func (x *exchange) checkLeft() *refusal { return x.checkAtLeast(1) }

// checkAtLeast refuses a call whose project has less left than an amount of tokens and nanodollars.
func (x *exchange) checkAtLeast(least int) *refusal {
	x.setOwners()
	x.firstAlone, x.call.Limits = true, &x.g.limits
	new(call.Batch).Deny(&x.call)
	return x.decide(func(ctx context.Context) error {
		c := x.batchCall()
		c.Tokens, c.Dollars = llm.Tokens{Output: least}, price.Amount(least)
		d, err := x.g.limits.Projects.PeekCall(ctx, c)
		d.Allowed = d.Allowed || d.RetryAfter <= c.MaxWait
		x.decision = ratelimit.Decision{Decision: d}
		return err
	}, func() {})
}
