package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/llm"
)

// read reads a call of a model, and finds out which quota it is charged to.
func (x *exchange) read() *refusal {
	if no := x.checkEncoding(); no != nil {
		return no
	}
	x.signed = x.ownSignature()
	if no := x.showUsage(); no != nil {
		return no
	}
	if no := x.readBody(); no != nil {
		return no
	}
	if no := x.checkBody(); no != nil {
		return no
	}
	var err error
	if x.call.Request, err = x.endpoint.Read(x.body); err != nil {
		return x.bad(http.StatusBadRequest, message.Plain(err))
	}
	asks := &x.call.Request
	if no := x.oneModel(); no != nil {
		return no
	}
	switch {
	case asks.Ambiguous:
		return x.bad(http.StatusBadRequest, `the body has two fields "model" that differ`)
	case asks.Wrong != "":
		return x.bad(http.StatusBadRequest, "the request's body: "+asks.Wrong)
	case asks.Fallbacks && asks.Model == "":
		return x.bad(http.StatusBadRequest, `the body names several models: it must name the first as "model"`)
	}
	x.Model, x.Stream = asks.Model, asks.Stream
	m, _ := x.upstream.Find(asks.Model)
	if slices.Contains(m.Aliases, asks.Model) {
		if x.signed {
			return x.bad(http.StatusBadRequest, fmt.Sprintf("%q is an alias, and the request is signed, so that it cannot be changed: it must name the model as %q", asks.Model, m.Name))
		}
		if no := x.rename(m.Name); no != nil {
			return no
		}
	}
	if asks.Model == "" {
		asks.Model = x.upstream.Unnamed // which is charged; the provider gets the call as it is
	}
	switch {
	case x.Model == "" && !x.mayCall(asks.Model):
		return x.bad(http.StatusForbidden, fmt.Sprintf("project %q may only call %s: the request names no model", x.Project, strings.Join(x.rules.Models, ", ")))
	case asks.Model == "" && x.escapes():
		return x.bad(http.StatusBadRequest, fmt.Sprintf(`the call names no model, and the provider %q has quotas: name a model, or have the configuration set unnamed_model, or a quota for "*"`, x.Provider))
	case !x.mayCall(x.Model, asks.Model):
		return x.bad(http.StatusForbidden, fmt.Sprintf("project %q may not call %q, but only %s", x.Project, x.Model, strings.Join(x.rules.Models, ", ")))
	case asks.Fallbacks && len(x.rules.Models) > 0:
		return x.bad(http.StatusForbidden, fmt.Sprintf("project %q may only call %s: it may not name other models to fall back to", x.Project, strings.Join(x.rules.Models, ", ")))
	}
	x.call.Limits, x.call.Project, x.call.MaxPause = &x.g.limits, x.Project, x.upstream.MaxPause
	x.call.ChargeSeen = x.rules.UnknownUsage == config.UsageSeen
	return nil
}

// charsets are what JSON may be said to be in: UTF-8, or a part of it.
var charsets = []string{"", "utf-8", "utf8", "us-ascii", "ascii"}

// checkEncoding refuses a body that is not plain UTF-8, which could be another request to
// its provider than it is here.
func (x *exchange) checkEncoding() *refusal {
	for _, encoding := range x.r.Header["Content-Encoding"] {
		if encoding != "" && encoding != "identity" {
			return x.bad(http.StatusUnsupportedMediaType, fmt.Sprintf("the body has Content-Encoding %.20q: it must have none, for it has to be read", encoding))
		}
	}
	for _, kind := range x.r.Header["Content-Type"] {
		for parameter := range strings.SplitSeq(kind, ";") {
			name, value, _ := strings.Cut(strings.ToLower(parameter), "=")
			if strings.TrimSpace(name) == "charset" && !slices.Contains(charsets, strings.Trim(value, ` "`)) {
				return x.bad(http.StatusUnsupportedMediaType, fmt.Sprintf("the body has Content-Type %.60q: its charset must be utf-8", kind))
			}
		}
	}
	return nil
}

// rename makes the request one for the model that an alias stands for.
func (x *exchange) rename(model string) *refusal {
	before := int64(len(x.body))
	if x.hold(before) != nil { // a copy, for a moment
		return x.full()
	}
	path, body := x.call.Request.Rename(x.target.Path, x.body, model)
	if path != x.target.Path {
		x.target.Path, x.target.RawPath = path, ""
		if strings.Contains(model, "/") && (x.endpoint.API == llm.Converse || x.endpoint.API == llm.Invoke) { // an ARN, which is one segment
			x.target.RawPath = strings.Replace(path, model, url.PathEscape(model), 1)
		}
		x.endpoint.Model = model
	}
	if len(body) > 0 && &body[0] != &x.body[0] { // it is a copy
		x.g.track(body)
	}
	x.body = body
	x.g.held.Add(-before)
	x.holds -= before
	x.call.Request, _ = x.endpoint.Read(body) // which it could read before
	return nil
}

// mayCall reports whether the project may call a model, by one of its names.
func (x *exchange) mayCall(names ...string) bool {
	if len(x.rules.Models) == 0 {
		return true
	}
	for _, pattern := range x.rules.Models {
		for _, name := range names {
			if x.upstream.Means(pattern, name) {
				return true
			}
		}
	}
	return false
}

// mostTrusted is how many bytes are made room for because a client says that it will
// send them.
const mostTrusted = 64 << 10

// readBody reads the body, in time and in bounds.
func (x *exchange) readBody() *refusal {
	most := x.cfg.Server.MaxBody
	if x.r.ContentLength > most {
		return x.tooLong(most)
	}
	text, err := x.readAll(most)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return x.bad(http.StatusRequestTimeout, fmt.Sprintf("the body has not come within %v", x.cfg.Server.BodyTimeout))
	case errors.Is(err, errFull):
		return x.full()
	case x.ctx.Err() != nil:
		return x.leave()
	case err != nil:
		x.w.Header().Set("Connection", "close")
		return x.bad(http.StatusBadRequest, "the body breaks off, or is not well-formed")
	case int64(len(text)) > most:
		return x.tooLong(most)
	}
	x.control.SetReadDeadline(time.Time{})
	x.body = text
	return nil
}

// growth is by how much the room for a body of a known length grows when it is full. A
// client has to send an eighth of what is held for it, and little is copied.
const growth = 8

// readAll reads the body, and no more than a byte beyond most. Its room counts as held
// before it is made. A short body of a known length has as much room as it needs; there
// is more for a long one as it comes, up to its length.
func (x *exchange) readAll(most int64) ([]byte, error) {
	length := x.r.ContentLength
	room := min(most+1, mostTrusted)
	if length >= 0 {
		room = length
	}
	for room > mostTrusted {
		room = (room + growth - 1) / growth
	}
	text, err := x.grow(nil, room)
	for err == nil && int64(len(text)) <= most {
		if len(text) == cap(text) {
			if int64(len(text)) == length {
				return text, x.atEnd()
			}
			if length >= 0 {
				room = min(growth*room, length)
			} else {
				room = min(2*room, most+1)
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

func (x *exchange) tooLong(most int64) *refusal {
	return x.bad(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", most))
}

// full refuses a call because too much is held of others.
func (x *exchange) full() *refusal {
	return later("the gateway holds as much of calls that wait as it may: try again", Refused)
}
