package engine

import (
	"context"
	"iter"

	"dappco.re/go/core/go-ratelimit/limit"
)

// MostOwn is to how many scopes of its own a call is charged at most: its project and all above it, its key and its run.
const MostOwn = 10

// Owners says to whom a call is charged beside its model: see [Call].
type Owners struct {
	Project, Key, Run, RunProject string

	Shadow string // see [Call].ShadowOf
}

// OwnersOf returns to whom a call is charged beside its model.
func OwnersOf(c *Call) Owners { return Owners{c.Project, c.Key, c.Run, c.RunProject, c.ShadowOf} }

// Projects is what a project.Limiter has for the packages of this module alone.
type Projects interface {
	// Scopes returns the n scopes that a call is charged to beside its model: those of its project and of all above it,
	// the innermost first, and those of its key and of its run if they have limits. An array may be on the caller's stack.
	Scopes(of Owners) (own [MostOwn]*Scope, n int, err error)

	// Caps returns the caps of a call. A call that is not valid has none.
	Caps(of Owners) Caps

	// LimitedBy returns who has a limit in one of several units that holds for a call, such as project "acme", key "7" or
	// run "x", and the unit: "tokens" or "dollars". Both are empty if there is none, or if it only counts.
	LimitedBy(of Owners, units ...string) (owner, unit string, err error)

	// LimitsTokens reports whether a limit on tokens governs a project.
	LimitsTokens(projectID string) bool

	// Limited returns the projects that have a limit of their own, and the templates, in no order.
	Limited() iter.Seq[string]

	// HasLimit reports whether a project has a limit of its own.
	HasLimit(projectID string) bool

	// FindDeposit is [Engine.FindDeposit].
	FindDeposit(ctx context.Context, name string) (*Deposit, error)
}

// Caps is what a call may be expected to use at most by the limits of its owners, and whether some of these reserve the
// most that it can use.
type Caps struct {
	MostTokens, MostDollars bool // some limit reserves the most of a call
	CutTokens, CutDollars   bool // some limit cuts streams

	Tokens   int64         // the smallest limit on tokens, or part of one: of the project, of those above it, of the key and of the run; 0: there is none
	Dollars  int64         // the same for dollars, in nanodollars
	MaxShare limit.Percent // the smallest MaxShare of the project and of those above it; 0: there is none
}

// Of returns how much of a model's quota the call may ask for; 0 is no quota.
func (c *Caps) Of(quota int) int {
	if c.MaxShare == 0 || quota == 0 {
		return quota
	}
	return max(int(c.MaxShare.Part()*float64(quota)+1e-6), 1) // 29% of 100 are 29, and not 28.999
}
