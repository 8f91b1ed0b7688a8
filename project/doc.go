// Package project limits what each project of a service may use: requests, tokens and
// dollars, a minute, an hour, a day, a week and a month at once, in total, and concurrent
// calls.
//
//	limiter := project.New(nil) // 60 requests a minute, 1,000 an hour, 10,000 a day
//	allowed, err := limiter.Allow(ctx, "project-123")
//
// Windows slide: whenever you look, the last 60 seconds hold no more than the
// minute's limit. A project that is at its limit changes nothing for others.
//
// # Projects below others
//
// The id of a project may be a path. If acme has a limit of its own, a call of
// "acme/search/alice" is charged to acme, to acme/search and to acme/search/alice, to all of
// them or to none; a denial names the owner of the limit. A limit whose id has the name * is
// a template: that of "acme/search/*" is the limit of every project below acme/search that
// has none of its own.
//
// Only limits that were set make such a tree. As long as none was set for acme, acme/search
// and acme/chat are two projects like any others: each has [Config].Default, and neither
// knows of the other.
//
// A call may also name the key with which it was made, and the run of an agent that it is a
// part of. Both have limits of their own: see [Limiter.SetKeyLimits] and [RunLimit].
//
// # Calls
//
// [Limiter.Spend] charges a call whose cost is known, and says where the project stands;
// [Limiter.Take] charges an estimate of tokens, which is corrected later;
// [Limiter.Acquire] is Take that waits for its turn.
//
// To charge calls to the quota of a model as well, make the limiter with NewProjects of
// a ratelimit.RateLimiter, and make the calls with that RateLimiter.
//
// Package httplimit is this as a middleware, grpclimit as interceptors.
package project
