package gateway

import (
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// hider redacts the secrets of a deployment in its server's answers: some servers quote them
// in errors. A nil hider redacts nothing.
type hider struct {
	needles  []string // the forms in which a secret may be quoted, the longest first
	shortest int      // bytes of the shortest needle
}

const (
	redacted = "***" // replaces a secret

	// minSecret is how many bytes a secret has at least. A shorter one is a word such as
	// "none" for a server that needs no key: redacting it would garble answers.
	minSecret = 7
)

// newHider returns a hider of secrets, or nil if there is nothing to redact.
func newHider(secrets ...string) *hider {
	h := &hider{}
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			h.needles = append(h.needles, forms(secret)...)
		}
	}
	if h.needles == nil {
		return nil
	}
	slices.SortFunc(h.needles, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	h.needles = slices.Compact(h.needles)
	h.shortest = len(h.needles[len(h.needles)-1])
	return h
}

// forms returns the forms in which an answer may quote a secret: unchanged, escaped as in URLs
// and JSON, and in base64. Base64 has three forms, one for each position in a group of three
// bytes; they leave out the characters that also depend on the bytes around the secret.
func forms(secret string) []string {
	quoted, _ := json.Marshal(secret) // a string cannot fail
	plain := string(quoted[1 : len(quoted)-1])
	all := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), plain, strings.ReplaceAll(plain, "/", `\/`)}
	for before := range 3 {
		text := append(make([]byte, before), secret...)
		first, last := (before*8+5)/6, len(text)*8/6
		all = append(all, base64.RawStdEncoding.EncodeToString(text)[first:last], base64.RawURLEncoding.EncodeToString(text)[first:last])
	}
	return all
}

// redact returns a text without the secrets. Most values of headers are shorter than any
// secret, and cost next to nothing.
func (h *hider) redact(text string) string {
	if h == nil || len(text) < h.shortest {
		return text
	}
	for _, needle := range h.needles {
		text = strings.ReplaceAll(text, needle, redacted)
	}
	return text
}

// redactHeader redacts the secrets in all values of a header.
func (h *hider) redactHeader(header http.Header) {
	if h == nil {
		return
	}
	for _, values := range header {
		for i, value := range values {
			values[i] = h.redact(value)
		}
	}
}

// redactError returns the body of an answer, without the secrets if the answer is an error.
// The body of a success is the model's own text, and redacting would delay its stream. A body
// that is compressed, although the gateway has not asked for that, is unpacked, or dropped if
// it is not gzip.
func (h *hider) redactError(response *http.Response, body io.Reader) io.Reader {
	if h == nil || response.StatusCode < http.StatusMultipleChoices {
		return body
	}
	switch encoding := response.Header.Get("Content-Encoding"); {
	case encoding == "" || strings.EqualFold(encoding, "identity"):
	case strings.EqualFold(encoding, "gzip") || strings.EqualFold(encoding, "x-gzip"):
		if zip, err := gzip.NewReader(body); err == nil {
			body = zip
		} else {
			body = http.NoBody
		}
	default:
		body = http.NoBody
	}
	response.Header.Del("Content-Encoding")
	response.Header.Del("Content-Length")
	response.ContentLength = -1
	return &redactedBody{hider: h, body: body}
}

// redactedBody is a body without the secrets. It keeps back what may be the beginning of a
// secret until more of the body comes: at most one byte less than the longest needle.
type redactedBody struct {
	*hider
	body    io.Reader
	pending string // the end of what was read, which may be the beginning of a secret
	ready   string // redacted text that is to be read
	err     error  // the error of reading the body
}

func (h *redactedBody) Read(p []byte) (int, error) {
	for len(h.ready) == 0 {
		if h.err != nil {
			return 0, h.err
		}
		h.fill()
	}
	n := copy(p, h.ready)
	h.ready = h.ready[n:]
	return n, nil
}

// fill reads a part of the body, and redacts it.
func (h *redactedBody) fill() {
	var room [4 << 10]byte
	var n int
	n, h.err = h.body.Read(room[:])
	text := h.redact(h.pending + string(room[:n]))
	h.pending = ""
	if h.err == nil {
		end := len(text) - h.prefixLength(text)
		text, h.pending = text[:end], text[end:]
	}
	h.ready = text
}

// prefixLength returns how many bytes at the end of a text are the beginning of a needle.
func (h *redactedBody) prefixLength(text string) (longest int) {
	for _, needle := range h.needles {
		for n := min(len(needle)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, needle[:n]) {
				longest = n
			}
		}
	}
	return longest
}
