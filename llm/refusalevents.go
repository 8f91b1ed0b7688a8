package llm

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"net/url"
)

// Idle returns what a server may send in a stream of the endpoint's API as long as it has nothing to send, so
// that proxies do not take the connection for dead. All SDKs ignore it. It is empty for APIs whose streams have
// no room for it: those that are not server-sent events, and Cohere's, whose SDKs report no error that
// comes in a stream. u is the URL of the request.
func (e Endpoint) Idle(u *url.URL) string {
	switch e.API {
	case Chat, Completions, Responses, Messages:
		return ": waiting\n\n"
	case Generate:
		if u.Query().Get("alt") == "sse" {
			return "\n\n" // Google's SDK for Go takes a comment for an error
		}
	}
	return ""
}

// RefuseInStream returns a refusal as the last events of a stream that has begun, in the form of the
// endpoint's provider, so that its SDKs report it as an error.
func (e Endpoint) RefuseInStream(r Refusal) []byte {
	body := e.refusal(r)
	switch e.API {
	case CohereChat:
		return event(nil, "message-end", encoded(object{"type": "message-end", "delta": object{"finish_reason": "ERROR", "error": r.Message}}))
	case Conversations:
		return event(nil, "conversation.response.error", encoded(object{"type": "conversation.response.error", "message": r.Message, "code": r.Status}))
	case Interactions:
		body["event_type"] = "error"
		return event(nil, "error", encoded(body))
	}
	return e.errorEvents(encoded(body))
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
		return e.errorEvents(line.Bytes())
	}
	r := Refusal{Status: status, Message: shape.Message}
	if r.Message == "" {
		r.Message = "the provider has answered with " + http.StatusText(status)
	}
	return e.RefuseInStream(r)
}

// Refusal returns a refusal as the last events of the stream that the meter has begun to read, whatever its format.
func (m *Meter) Refusal(e Endpoint, r Refusal) []byte {
	switch m.format {
	case formatFrames:
		return exceptionFrame(r)
	case formatEvents:
		return e.RefuseInStream(r)
	}
	refusal := e.refusal(r)
	if e.API == CohereChat { // its version 1
		refusal = object{"event_type": "stream-end", "is_finished": true, "finish_reason": "ERROR", "error": r.Message}
	}
	body := encoded(refusal)
	switch shape := m.stream.json.shape; {
	case !shape.array:
		return append(body, '\n')
	case shape.values > 1: // the last of them is the one that does not follow
		body = append([]byte(",\r\n"), body...)
	}
	return append(body, ']')
}

// errorEvents returns the events for an error whose body, on one line, has the form of the API.
func (e Endpoint) errorEvents(body []byte) []byte {
	switch e.API {
	case Messages:
		return event(nil, "error", body)
	case Responses:
		return responsesErrorEvents(body)
	case Generate:
		return event(nil, "", body)
	}
	return event(event(nil, "", body), "", []byte("[DONE]"))
}

// responsesErrorEvents returns the events that end a stream of OpenAI's responses: one that SDKs report as an
// error, and one for clients that wait for the state of the response.
func responsesErrorEvents(body []byte) []byte {
	var whole struct {
		Error map[string]any `json:"error"`
	}
	json.Unmarshal(body, &whole) // leaves no error if the body has none
	fault := whole.Error
	first := encoded(object{
		"type": "error", "sequence_number": 0, "error": fault,
		"code": fault["code"], "message": fault["message"], "param": fault["param"],
	})
	second := encoded(object{"type": "response.failed", "sequence_number": 1, "response": object{
		"object": "response", "status": "failed", "output": []any{},
		"error": object{"code": fault["code"], "message": fault["message"]},
	}})
	return event(event(nil, "error", first), "response.failed", second)
}

// event appends a server-sent event. Without a name it has only its data, which is one line.
func event(b []byte, name string, data []byte) []byte {
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}

// exceptionFrame returns a refusal as a message of AWS's event streams.
func exceptionFrame(r Refusal) []byte {
	kind := "modelStreamErrorException"
	switch r.Status {
	case http.StatusTooManyRequests:
		kind = "throttlingException"
	case http.StatusServiceUnavailable:
		kind = "serviceUnavailableException"
	}
	var headers []byte
	for _, h := range [][2]string{{":content-type", "application/json"}, {":exception-type", kind}, {":message-type", "exception"}} {
		headers = append(append(append(headers, byte(len(h[0]))), h[0]...), headerString)
		headers = append(binary.BigEndian.AppendUint16(headers, uint16(len(h[1]))), h[1]...)
	}
	payload := encoded(object{"message": r.Message})
	f := binary.BigEndian.AppendUint32(nil, uint32(prelude+len(headers)+len(payload)+frameEnd))
	f = binary.BigEndian.AppendUint32(f, uint32(len(headers)))
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	f = append(append(f, headers...), payload...)
	return binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
}
