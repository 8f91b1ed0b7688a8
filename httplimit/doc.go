// Package httplimit is middleware for HTTP servers: it holds every request to
// the limits of its project, and tells clients where they stand.
//
//	limiter := project.New(nil) // 60 requests a minute, 1000 an hour, 10000 a day
//	http.ListenAndServe(addr, httplimit.Middleware(limiter)(handler))
//
// A request names its project in the header X-Project-ID; [Identify] takes the
// name from anywhere else. [Cost] charges tokens too, [Wait] lets requests wait
// in turn, [Shadow] only counts, [Skip] lets some pass.
//
// [Limit] is the same without projects, for any [limit.Limiter] of requests:
//
//	perClient := limit.NewLimiter(httplimit.ClientPrefix(), limit.PerSecond(10), limit.PerMinute(200))
//	http.ListenAndServe(addr, httplimit.Limit(perClient)(handler))
//
// # Answers
//
// Responses have the fields RateLimit-Policy, which says what the limits are,
// and RateLimit, which says what is left of them and in how many seconds they
// are as new (draft-ietf-httpapi-ratelimit-headers-10):
//
//	RateLimit-Policy: "minute";q=60;w=60, "hour";q=1000;w=3600, "day";q=10000;w=86400
//	RateLimit: "minute";r=59;t=60, "hour";r=999;t=3600, "day";r=9999;t=86400
//
// Limits of tokens have the parameter qu="tokens", which is ours: the draft
// knows no such unit.
//
// What is refused is not handed on. It is answered with an
// application/problem+json:
//
//	429  a limit is reached. Retry-After says when the same request passes, and
//	     RateLimit has only the limits that deny it, t being when each would let it pass
//	413  the request costs more than a limit ever lets pass
//	400  the request names no project, or two, or it or its cost is not valid
//	503  the limits could not be checked: the store that counts is lost
//	499  the client has gone while it waited; nothing was charged
//
// A refusal charges nothing.
package httplimit
