// Package project limits what each project of a service may use: requests and
// tokens, a minute, an hour and a day at once, a budget of tokens for 30 days, and
// calls at a time.
//
//	limiter := project.New(nil) // 60 requests a minute, 1,000 an hour, 10,000 a day
//	allowed, err := limiter.Allow(ctx, "project-123")
//
// Windows slide: whenever you look, the last 60 seconds hold no more than the
// minute's limit. A project that is at its limit changes nothing for others.
//
// [Limiter.Spend] says where the project stands; [Limiter.Take] charges tokens
// whose number is an estimate, to be corrected; [Limiter.Acquire] waits for its
// turn. Calls that are also charged to the quotas of a model, or to nothing, are those of
// a limiter of package ratelimit whose NewProjects has made the limiter of projects.
//
// Package httplimit is this as a middleware, grpclimit as interceptors.
package project
