package llmhttp

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/argument"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// Option changes how calls are limited.
type Option func(*transport)

// defaultMaxWait is long enough for a quota by the minute that several calls wait for, and
// too short for a quota by the day.
const defaultMaxWait = 5 * time.Minute

// MaxWait bounds how long a call may wait for its turn; the default is five minutes. A call
// that would have to wait for as long, or longer, is answered with 429 at once, and so is one
// that would have to wait for longer than until the deadline of its context. With zero, a
// call waits as long as its context lets it.
func MaxWait(d time.Duration) Option {
	argument.Duration("MaxWait", d)
	return func(t *transport) { t.maxWait = d }
}

// Reject lets no call wait: a call that may not be sent now is answered with 429, in the
// form of the provider's own 429, after which SDKs try again by themselves.
func Reject() Option { return func(t *transport) { t.reject = true } }

// Projects charges each call to the limits of a project, too. The function of returns the
// project of a request. The limiter must be one that
// [ratelimit.RateLimiter.NewProjects] of the limiter that [New] is given has returned.
func Projects(limiter *project.Limiter, of func(*http.Request) string) Option {
	if limiter == nil || of == nil {
		panic("ratelimit: Projects needs a limiter, and a function that tells whose a request is: one is nil")
	}
	return func(t *transport) { t.limits.Projects, t.projectOf = limiter, of }
}

// Prices says what calls cost, for limits of projects in dollars. Without it, the prices are those
// that providers publish: see [price.Known]. The price unpriced is that of models that the table has
// none for; if it is nil, calls of such models are answered with 403 where dollars are limited.
func Prices(table *price.Table, unpriced *price.Price) Option {
	if table == nil {
		panic("ratelimit: Prices needs a table: it is nil")
	}
	return func(t *transport) { t.prices = &call.Prices{Table: table, Unpriced: unpriced} }
}

// Fit lowers the max_tokens of a call, by whichever name its API has, to what is left of the limits that reserve the
// most of it (see [project.Reserve]), in place of denying it or letting it wait, but not below least tokens for each
// answer: 0 is 256. A call without max_tokens gets one. The header X-Ratelimit-Fit of its response says
// to how many tokens it was lowered; an answer that needs more is cut, and ends with the provider's own "length".
// Requests that are signed are left as they are. Fit panics if least is negative.
func Fit(least int) Option {
	if least < 0 {
		panic(fmt.Sprintf("ratelimit: Fit: least is %d: it must not be negative", least))
	}
	return func(t *transport) { t.fitMin = cmp.Or(least, dialect.DefaultFitMin) }
}

// Quota charges a call to the quota that the function of names, in place of that of the
// model in the request: some models share a quota.
func Quota(of func(provider llm.Provider, model string) string) Option {
	argument.Function("Quota", of != nil)
	return func(t *transport) { t.quotaOf = of }
}

// Tokenizer counts the tokens of a prompt's texts with a function, in place of estimating
// them by length.
func Tokenizer(count func(model, text string) int) Option {
	argument.Function("Tokenizer", count != nil)
	return func(t *transport) { t.tokenizer = count }
}

// LeaveStreams sends requests for streams unchanged. Without it, a request for a stream of
// OpenAI's API that would not report its usage gets the field stream_options.include_usage,
// and the caller does not see the chunk that reports it. Use LeaveStreams for servers that
// refuse a request with this field.
func LeaveStreams() Option { return func(t *transport) { t.leaveStreams = true } }

// ChargeSeen charges only the output that was seen, where a response ends before it has
// reported its usage, such as a stream that the caller closes early. Without it, such a call
// is charged at least what was reserved for its output, because the provider may have
// generated as much.
func ChargeSeen() Option { return func(t *transport) { t.chargeSeen = true } }
