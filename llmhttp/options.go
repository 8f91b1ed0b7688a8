package llmhttp

import (
	"fmt"
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// Option changes how calls are limited.
type Option func(*transport)

// defaultMaxWait lets a call wait for several minutes' quotas, and not for a day's.
const defaultMaxWait = 5 * time.Minute

// MaxWait is how long a call may wait for its turn; the default is five minutes. One
// that would have to wait for as long is answered with 429 at once. Zero is as long
// as its context lets it.
func MaxWait(most time.Duration) Option {
	if most < 0 {
		panic(fmt.Sprintf("ratelimit: MaxWait(%v): it must not be negative", most))
	}
	return func(t *transport) { t.maxWait = most }
}

// Reject lets no call wait: one that may not be sent now is answered with 429, in
// the shape of the provider's own, after which SDKs try again by themselves.
func Reject() Option { return func(t *transport) { t.reject = true } }

// Projects charges calls to the limits of projects too, each to the one that the
// request is of. The limiter's Models must be the one that is given to [New].
func Projects(limiter *project.Limiter, of func(*http.Request) string) Option {
	if limiter == nil || of == nil {
		panic("ratelimit: Projects needs a limiter, and a function that tells whose a request is: one is nil")
	}
	return func(t *transport) { t.limits.Projects, t.projectOf = limiter, of }
}

// Quota names the model whose quota a call is charged to, where that is not the
// model that it asks for: some models share a quota.
func Quota(of func(llm.Request) string) Option {
	if of == nil {
		panic("ratelimit: Quota needs a function: it is nil")
	}
	return func(t *transport) { t.quotaOf = of }
}

// Tokenizer counts the texts of a prompt, in place of an estimate by their length.
func Tokenizer(count func(model, text string) int) Option {
	if count == nil {
		panic("ratelimit: Tokenizer needs a function: it is nil")
	}
	return func(t *transport) { t.tokenizer = count }
}

// LeaveStreams leaves requests for streams as they are. Without it, a stream of
// OpenAI's API that would not tell what it uses is asked to (by
// stream_options.include_usage), and the chunk that tells it is hidden from the
// caller. Use it for servers that refuse a request with such a field.
func LeaveStreams() Option { return func(t *transport) { t.leaveStreams = true } }

// ChargeSeen charges a response that ends before it has told its usage, such as a stream
// that the caller closes early, what was seen of it. Without it, such a call keeps at least
// what was reserved for its output, because the provider may have generated as much.
func ChargeSeen() Option { return func(t *transport) { t.chargeSeen = true } }
