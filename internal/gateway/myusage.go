package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// myDimensions are what a client may group its own usage by.
var myDimensions = []books.Dimension{books.ByHour, books.ByDay, books.ByModel}

// serveMyUsage answers with what the books say of the client: of its key, or of its project where keys are
// off.
func (x *exchange) serveMyUsage() *refusal {
	given, err := url.ParseQuery(x.target.RawQuery)
	if err != nil {
		return refusalf(http.StatusBadRequest, "the query is not URL-encoded")
	}
	for name, values := range given {
		if !slices.Contains([]string{"by", "since", "until"}, name) || len(values) > 1 {
			return refusalf(http.StatusBadRequest, "the parameter %.40q: the parameters are by, since and until, each once at most", name)
		}
	}
	q, err := books.Words{By: given.Get("by"), Since: given.Get("since"), Until: given.Get("until")}.Query(time.Now())
	if err != nil {
		return refusalf(http.StatusBadRequest, "%s", message.Plain(err))
	}
	for _, d := range q.By {
		if !slices.Contains(myDimensions, d) {
			return refusalf(http.StatusBadRequest, "usage by %.40q: it can be grouped by hour, day and model", d)
		}
	}
	report, err := x.myUsage(q)
	switch {
	case errors.Is(err, ErrNoBooks):
		return refusalf(http.StatusNotFound, "this gateway does not keep usage")
	case errors.Is(err, errReadsTooOften):
		return refusalf(http.StatusTooManyRequests, "%s", message.Plain(err))
	case errors.Is(err, books.ErrTooMany):
		return refusalf(http.StatusBadRequest, "%s", message.Plain(err))
	case err != nil:
		return x.undecided(err)
	}
	return x.sendOwnJSON(report)
}

// readsPerMinute is how often a client may have the books read. To read them takes time in which the store
// does nothing else, and nothing is charged for it.
const readsPerMinute = 60

var errReadsTooOften = fmt.Errorf("ratelimit: usage was read too often: a client may read it %d times a minute, and a page reads it twice", readsPerMinute)

// readerOf returns who has the books read: a key, or else an address, because a client without a key may
// give itself any name.
func readerOf(x *exchange) string {
	if x.Key != "" {
		return x.Key
	}
	host, _, _ := net.SplitHostPort(x.r.RemoteAddr)
	return host
}

// myUsage asks the books, and sees to it that the lines of others do not count.
func (x *exchange) myUsage(q books.Query) (UsageReport, error) {
	if !x.g.reads.Allow(x) {
		return UsageReport{}, errReadsTooOften
	}
	q.Project, q.Key = x.path, x.Key
	sum, err := x.g.Usage(x.ctx, q)
	if err != nil {
		return UsageReport{}, err
	}
	return NewUsageReport(q, sum, time.Now()), nil
}
