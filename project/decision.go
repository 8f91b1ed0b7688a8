package project

import (
	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Never is the RetryAfter of a call that can never pass, because it is larger than a limit.
const Never = limit.Never

// Concurrent is the name of the limit on the calls of a project at a time.
const Concurrent = decision.Concurrent

// What windows limit.
const (
	Requests = decision.Requests
	Tokens   = decision.Tokens
	Dollars  = decision.Dollars
)

// Decision is the answer to one call: whether it is Allowed, and if not, the name of the Limit that denies it, its Owner,
// and when to ask again (RetryAfter). Its method Windows returns where the call's project, all above it, its key and its
// run stand in each of their windows, Denying which of these denies, and Reason a sentence for people. Share is set if a
// share denies the call, Shadow if a limit in shadow would have. Concurrent is how many calls of the project are under
// way, if it has MaxConcurrent, and Local says that the store has decided without the server that it shares with others.
type Decision = decision.Decision

// Standing is where the Owner of a Window stands in it after a call: what is Used, how much of that calls under way have
// Reserved, what is Remaining, when the window lets the call pass (RetryAfter) and when nothing of it is used
// (ResetAfter). Held says that only what calls under way have reserved denies the call.
type Standing = decision.Standing

// Window is one of the limits of a project, a key or a run: a Count of a Unit in a Period, by its Name in the
// configuration, such as "tokens_per_day". Those of a run are "runs.calls", "runs.tokens" and "runs.dollars".
type Window = decision.Window

// DeniedShare is the share of a project that denies a call: Max, of which so much is Used, while so many Projects share
// the Window, which is nil for a limit of a model.
type DeniedShare = decision.DeniedShare

// ShadowDenial is a limit in shadow that would have denied a call: its Owner, its name, and what is Used of Max with the
// call. It is zero if none would have.
type ShadowDenial = decision.ShadowDenial
