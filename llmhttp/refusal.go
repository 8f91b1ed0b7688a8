package llmhttp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"dappco.re/go/core/go-ratelimit/project"
)

// refuse returns the answer to a call that is not sent, as its provider would have
// written it.
func (c *passage) refuse(d *project.Decision, err error) *http.Response {
	r := c.Refusal(d, err)
	r.Retry = r.Retry && err == nil // who has waited already has waited enough
	header, text := c.Request.Refuse(r)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)), StatusCode: r.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
		Request: c.request,
	}
}
