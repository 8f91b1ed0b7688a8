package dialect

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
)

// Idle returns what a server may send in a stream of the endpoint's API as long as it has nothing to send, so
// that proxies do not take the connection for dead. All SDKs ignore it. It is empty for APIs whose streams have
// no room for it: those that are not server-sent events, and those whose SDKs report no error that
// comes in a stream. u is the URL of the request.
func (e Endpoint) Idle(u *url.URL) string {
	if idle := e.API.protocol().idle; idle != nil {
		return idle(u)
	}
	return ""
}

// idleComment is a server-sent event that has nothing but a comment.
func idleComment(*url.URL) string { return ": waiting\n\n" }

// RefuseInStream returns a refusal as the last events of a stream that has begun, in the form of the
// endpoint's provider, so that its SDKs report it as an error.
func (e Endpoint) RefuseInStream(r Refusal) []byte {
	p, body := e.API.protocol(), e.refusal(r)
	if p.refuseInStream != nil {
		return p.refuseInStream(r, body)
	}
	return p.errorEvents(encoded(body))
}

// encoded returns an object as JSON on one line.
func encoded(o object) []byte {
	text, _ := json.Marshal(o) // cannot fail: only strings and numbers
	return text
}

// FailInStream returns a provider's error as the last events of a stream that has begun. body is the body of the
// provider's answer.
func (e Endpoint) FailInStream(status int, body []byte) []byte {
	var shape struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &shape) == nil && bytes.HasPrefix(shape.Error, []byte("{")) {
		var line bytes.Buffer
		json.Compact(&line, body) // cannot fail: the body is valid
		return e.API.protocol().errorEvents(line.Bytes())
	}
	r := Refusal{Status: status, Message: shape.Message}
	if r.Message == "" {
		r.Message = "the provider has answered with " + http.StatusText(status)
	}
	return e.RefuseInStream(r)
}

// Refusal returns a refusal as the last events of the stream that the meter has begun to read, whatever its format.
func (m *Meter) Refusal(e Endpoint, r Refusal) []byte {
	p := e.API.protocol()
	switch m.format {
	case formatFrames:
		return m.protocol.refuseInFrame(r)
	case formatEvents:
		return e.RefuseInStream(r)
	}
	var body []byte
	if p.refuseInValues != nil {
		body = encoded(p.refuseInValues(r))
	} else {
		body = encoded(e.refusal(r))
	}
	switch shape := m.stream.json.shape; {
	case !shape.array:
		return append(body, '\n')
	case shape.values > 1: // the last of them is the one that does not follow
		body = append([]byte(",\r\n"), body...)
	}
	return append(body, ']')
}

// event appends a server-sent event. Without a name it has only its data, which is one line.
func event(b []byte, name string, data []byte) []byte {
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}
