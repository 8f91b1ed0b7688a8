package gateway

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// read reads the body of a call of a model, and checks that the project may make the call.
func (x *exchange) read() *refusal {
	x.signed = x.ownSignature()
	if refused := firstRefusal(x.checkEncoding, x.ensureUsage, x.readBody, x.checkBodyForKeys, x.readRequest, x.readUser, x.checkOneModel); refused != nil {
		return refused
	}
	request := &x.call.Request
	switch {
	case request.Ambiguous:
		return refusalf(http.StatusBadRequest, `the body has two fields "model" that differ`)
	case request.Wrong != "":
		return refusalf(http.StatusBadRequest, "the request's body: %s", request.Wrong)
	case request.Fallbacks && request.Model == "":
		return refusalf(http.StatusBadRequest, `the body names several models: it must name the first as "model"`)
	}
	x.Model, x.Stream = request.Model, request.Stream
	m, _ := x.upstream.Find(request.Model)
	if slices.Contains(m.Aliases, request.Model) {
		if request.Form {
			return refusalf(http.StatusBadRequest, "%q is an alias, and the body is a form, which is not changed: it must name the model as %q", request.Model, m.Name)
		}
		if x.signed {
			return refusalf(http.StatusBadRequest, "%q is an alias, and the request is signed, so that it cannot be changed: it must name the model as %q", request.Model, m.Name)
		}
		if refused := x.renameModel(m.Name); refused != nil {
			return refused
		}
	}
	if request.Model == "" {
		request.Model = x.upstream.Unnamed // the model that is charged; the provider gets the call unchanged
	}
	if refused := x.checkModel(); refused != nil {
		return refused
	}
	x.setOwners()
	x.call.Limits, x.call.MaxPause = &x.g.limits, x.upstream.MaxPause
	x.call.Prices, x.call.Provider = &x.setup.prices, x.Provider
	x.call.ChargeSeen = x.rules.UnknownUsage == config.UsageSeen
	x.call.ChargeFailed = x.rules.FailedCalls == config.FailedReserved
	x.setFit()
	return x.readSearched()
}

// setOwners sets to whom the call is charged beside its model.
func (x *exchange) setOwners() {
	x.call.Project, x.call.RunProject, x.call.Key, x.call.Run = x.path, x.Project, x.Key, x.Run
	x.call.ShadowOf = x.g.shadowOf(x.setup, x.path)
}

// readRequest reads the fields of the body that the gateway needs.
func (x *exchange) readRequest() (refused *refusal) {
	var err error
	if x.endpoint.API.IsAbout() {
		if about, refused := x.readStored(); about || refused != nil {
			return refused
		}
	}
	if x.call.Request, err = x.endpoint.ReadAs(x.r.Header.Get("Content-Type"), x.body); err != nil {
		return refusalf(http.StatusBadRequest, "%s", message.Plain(err))
	}
	x.call.Request.ReadTier(x.r.Header)
	return nil
}

// charsets are the charsets of JSON that the gateway accepts: UTF-8 and ASCII.
var charsets = []string{"", "utf-8", "utf8", "us-ascii", "ascii"}

// checkEncoding refuses a body that the gateway cannot decompress, or that is not UTF-8: the provider
// could read another request in it than the gateway does.
func (x *exchange) checkEncoding() *refusal {
	if refused := x.findCoding(); refused != nil {
		return refused
	}
	kind, refused := x.headerOnce("Content-Type")
	for parameter := range strings.SplitSeq(kind, ";") {
		name, value, _ := strings.Cut(strings.ToLower(parameter), "=")
		if strings.TrimSpace(name) == "charset" && !slices.Contains(charsets, strings.Trim(value, ` "`)) {
			return refusalf(http.StatusUnsupportedMediaType, "the body has Content-Type %.60q: its charset must be utf-8", kind)
		}
	}
	return refused
}

// renameModel replaces an alias in the request with the model that it stands for.
func (x *exchange) renameModel(model string) *refusal {
	before := int64(len(x.body))
	if x.reserveBytes(before) != nil { // there are two copies for a moment
		return noMemory()
	}
	path, body := x.call.Request.Rename(x.target.Path, x.body, model)
	if path != x.target.Path {
		x.target.Path, x.target.RawPath = path, ""
		if strings.Contains(model, "/") && (x.endpoint.API == dialect.Converse || x.endpoint.API == dialect.Invoke) { // the model is an ARN, which must stay one segment
			x.target.RawPath = strings.Replace(path, model, url.PathEscape(model), 1)
		}
		x.endpoint.Model = model
	}
	if len(body) > 0 && &body[0] != &x.body[0] { // the body was copied
		x.g.track(body)
	}
	x.body = body
	x.g.bodyBytes.Add(-before)
	x.bodyBytes -= before
	return x.readRequest()
}

// maxPreallocated is how many bytes are allocated for a body at once because the request's
// Content-Length says so.
const maxPreallocated = 64 << 10

// readBody reads the body. It refuses one that is too long or takes too long.
func (x *exchange) readBody() *refusal {
	limit := x.cfg.Server.MaxBody
	if x.r.ContentLength > limit {
		return tooLong(limit)
	}
	text, err := x.readAll(limit)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refusalf(http.StatusRequestTimeout, "the body has not come within %v", x.cfg.Server.BodyTimeout)
	case errors.Is(err, errNoMemory):
		return noMemory()
	case x.ctx.Err() != nil:
		return clientLeft()
	case err != nil:
		x.w.Header().Set("Connection", "close")
		return refusalf(http.StatusBadRequest, "the body breaks off, or is not well-formed")
	case int64(len(text)) > limit:
		return tooLong(limit)
	}
	x.control.SetReadDeadline(time.Time{})
	x.body = text
	return x.decompress(limit)
}

// growth is the factor by which the buffer of a body of known length grows when it is full. So a
// client has to send an eighth of the memory that is allocated for it, and little is copied.
const growth = 8

// readAll reads the body, and no more than a byte beyond the limit. A short body of known
// length gets a buffer of its length; the buffer of a long one grows up to its length.
func (x *exchange) readAll(limit int64) ([]byte, error) {
	length := x.r.ContentLength
	room := min(limit+1, maxPreallocated)
	if length >= 0 {
		room = length
	}
	for room > maxPreallocated {
		room = (room + growth - 1) / growth
	}
	text, err := x.grow(nil, room)
	for err == nil && int64(len(text)) <= limit {
		if len(text) == cap(text) {
			if int64(len(text)) == length {
				return text, x.atEnd()
			}
			if length >= 0 {
				room = min(growth*room, length)
			} else {
				room = min(2*room, limit+1)
			}
			if text, err = x.grow(text, room); err != nil {
				break
			}
		}
		var n int
		n, err = x.r.Body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
	}
	switch {
	case err != io.EOF:
		return text, err
	case int64(len(text)) < length:
		return text, io.ErrUnexpectedEOF
	}
	return text, nil
}

// atEnd returns an error unless the body is at its end.
func (x *exchange) atEnd() error {
	if _, err := x.r.Body.Read(make([]byte, 1)); err != io.EOF {
		return err
	}
	return nil
}

// tooLong refuses the body of a call that is longer than the configuration allows.
func tooLong(limit int64) *refusal {
	return refusalf(http.StatusRequestEntityTooLarge, "the body is longer than %d bytes, which is what max_body of server in the gateway's configuration allows", limit)
}

// passedTooLong refuses the body of a request that is no call of a model.
func passedTooLong() *refusal {
	return refusalf(http.StatusRequestEntityTooLarge, "the body is longer than %d bytes", maxPassed)
}

// noMemory refuses a call because the bodies of other calls take up the memory for bodies.
func noMemory() *refusal {
	return retryLater("the bodies of waiting calls take up all the memory that they may: try again", Refused)
}
