package ratelimit

import (
	"fmt"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/project"
)

// ErrCrowded is the error of a call that may not wait because too many calls of its
// project already do.
var ErrCrowded = fair.ErrCrowded

// Call says everything about a call: what it asks for (Estimated, or Tokens where prompt and output are known apart, and
// Dollars), which Model it is for, and which Project makes it. It is charged to the quota of its model and, after
// [RateLimiter.NewProjects], to the limits of its project: to all of them or to none. The zero value of each field is
// ready to use. It is the same Call as that of package project.
type Call = engine.Call

// Reservation is what an admitted call has taken, until its actual usage is known. End it
// with Commit, CommitTokens or Cancel: see [project.Reservation].
type Reservation = project.Reservation

// checkProject returns what is wrong with the name of a project. An empty name is valid.
func checkProject(name string) error {
	if name == "" || modelname.Valid(name) {
		return nil
	}
	return fmt.Errorf("ratelimit: project %.40q: a name must have up to %d bytes of UTF-8, and no control characters", name, modelname.MaxBytes)
}
