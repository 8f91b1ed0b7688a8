// Package project limits what each project of a service may use: requests and
// tokens, a minute, an hour and a day at once, a budget of tokens for 30 days, and
// concurrent calls.
//
//	limiter := project.New(nil) // 60 requests a minute, 1,000 an hour, 10,000 a day
//	allowed, err := limiter.Allow(ctx, "project-123")
//
// Windows slide: whenever you look, the last 60 seconds hold no more than the
// minute's limit. A project that is at its limit changes nothing for others.
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
