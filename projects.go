package ratelimit

import (
	"net/url"
	"time"
)

// Projects is what package project needs of a limiter beside calls. It is not meant
// for others: who takes of the store without regard to those who wait comes before
// them.
type Projects struct{ limiter *RateLimiter }

// Projects is for package project.
func (rl *RateLimiter) Projects() Projects { return Projects{rl} }

// Store returns the store in which the limits of projects are counted: that of the
// quotas, or where these are counted in memory, one in memory too.
func (p Projects) Store() Store { return p.limiter.projects.store }

// Observer returns who is told of what happens, or nil.
func (p Projects) Observer() Observer { return p.limiter.observer }

// Ahead reports whether calls of the project wait for what it may use, for which of
// its limits, and when the first of them asks again.
func (p Projects) Ahead(project string) (again time.Duration, by string, waiting bool) {
	ahead, waiting := p.limiter.aheadOf(project, func(string) bool { return true })
	return ahead.Again, ahead.By, waiting
}

// Wake lets calls that wait for what the project may use ask again: its limits have
// changed, or something was given back.
func (p Projects) Wake(project string) { p.limiter.wakeProject(project) }

// Guess returns when to ask again for what passes when one of the project's calls
// ends, at the latest after so long.
func (Projects) Guess(lease time.Duration) time.Duration { return min(lease, slotGuess) }

// Key returns what the keys of a project's counters begin with, and no other
// project's: that of its requests ends in "requests", that of its tokens in
// "tokens", that of its calls under way in "slots".
func (Projects) Key(project string) string { return projectKey(project) }

func projectKey(project string) string { return "project/" + url.PathEscape(project) + "/" }
