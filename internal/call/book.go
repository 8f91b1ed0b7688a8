package call

import (
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/llm"
)

// book has the call entered in the books, with the tokens that it is charged and the parts of them
// that the provider has reported.
func (c *Call) book(used *llm.Usage, charged llm.Tokens) {
	if c.Owner == nil || c.reservation == nil {
		return
	}
	(*engine.Reservation)(c.reservation).Book(books.Entry{Owner: *c.Owner, Amounts: books.Amounts{
		books.Requests:   1,
		books.Input:      int64(charged.Input),
		books.Cached:     int64(used.Cached),
		books.CacheWrite: int64(used.CacheWrite),
		books.Output:     int64(charged.Output),
		books.Reasoning:  int64(used.Reasoning),
	}})
}
