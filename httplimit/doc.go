// Package httplimit is middleware for HTTP servers: it lets only the requests pass that the
// limits of their projects allow, and sends the limits and what is left of them in headers.
//
//	limiter := project.New(nil) // 60 requests a minute, 1000 an hour, 10000 a day
//	http.ListenAndServe(addr, httplimit.Middleware(limiter)(handler))
//
// A request names its project in the header X-Project-ID; [Identify] takes the name from
// elsewhere. [Cost] charges tokens, too, [Wait] lets requests wait for their turn, [Shadow] only
// counts, and [Skip] lets some requests pass.
//
// [Limit] is the same without projects, for any [limit.Limiter] of requests:
//
//	perClient := limit.NewLimiter(httplimit.ClientPrefix(), limit.PerSecond(10), limit.PerMinute(200))
//	http.ListenAndServe(addr, httplimit.Limit(perClient)(handler))
//
// # Answers
//
// Responses have the headers RateLimit-Policy, with the limits, and RateLimit, with what is
// left of them and the seconds until all of it is left again
// (draft-ietf-httpapi-ratelimit-headers-10):
//
//	RateLimit-Policy: "requests_per_minute";q=60;w=60, "requests_per_hour";q=1000;w=3600, "requests_per_day";q=10000;w=86400
//	RateLimit: "requests_per_minute";r=59;t=60, "requests_per_hour";r=999;t=3600, "requests_per_day";r=9999;t=86400
//
// Limits on tokens have the parameter qu="tokens", which is our own, because the draft has no
// such unit.
//
// A request that does not pass does not reach the handler, and is charged nothing. The client
// gets an application/problem+json:
//
//	429  a limit is reached. Retry-After says when the same request would pass, and
//	     RateLimit has only the limits that deny it, with t as the seconds until each does not
//	400  the request costs more than a limit, so it can never pass; or it names no project, or two,
//	     or its project or cost is not valid
//	411  the project's tokens are limited, and the body has no Content-Length by which to charge
//	     them: see [Cost]
//	503  the limits could not be checked: the store that counts is lost
//	499  the client has left while its request waited
package httplimit
