package llmhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// mostRetried is the longest wait after which an SDK may try again by itself. Beyond
// it somebody should know.
const mostRetried = time.Minute

// refuse returns the answer to a call that is not sent, as its provider would have
// written it. Who has waited already has waited enough.
func (c *call) refuse(d ratelimit.Decision, err error) *http.Response {
	r := llm.Refusal{Status: http.StatusTooManyRequests, RetryAfter: d.RetryAfter, Retry: err == nil && d.RetryAfter <= mostRetried}
	if errors.Is(err, ratelimit.ErrNever) || d.RetryAfter == ratelimit.Never {
		r = llm.Refusal{Status: http.StatusRequestEntityTooLarge}
	}
	why := d.Reason
	if err != nil && (why == "" || !errors.Is(err, context.DeadlineExceeded)) {
		why = strings.TrimPrefix(err.Error(), "ratelimit: ")
	}
	r.Message = fmt.Sprintf("the limiter has not sent the call of %q: %s", c.quota, why)
	header, text := c.asks.Refuse(r)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)), StatusCode: r.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
		Request: c.request,
	}
}
