package gateway

import (
	"bytes"
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

// hider takes the secrets of a deployment out of what its server answers: some servers
// quote them in errors. Its needles are the forms in which a secret may be quoted, the longest
// first. A nil hider hides nothing.
type hider struct {
	needles []string
	least   int // bytes of the shortest needle
}

const (
	hidden = "***" // stands in the place of a secret

	// leastHidden is how many bytes a secret has at least. A shorter one is a word such as
	// "none" for a server that needs no key: to hide it would garble answers.
	leastHidden = 7
)

// newHider returns a hider of secrets, or nil if there are none.
func newHider(secrets ...string) *hider {
	h := &hider{}
	for _, secret := range secrets {
		if len(secret) >= leastHidden {
			h.needles = append(h.needles, forms(secret)...)
		}
	}
	if h.needles == nil {
		return nil
	}
	slices.SortFunc(h.needles, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	h.needles = slices.Compact(h.needles)
	h.least = len(h.needles[len(h.needles)-1])
	return h
}

// forms returns a secret as it is, as URLs and JSON escape it, and as it stands in base64,
// of which there are three forms: one for each place in a group of three bytes. The characters
// that it shares with what stands around it are left out.
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

// text returns a text without the secrets.
func (h *hider) text(text string) string {
	if h == nil || len(text) < h.least {
		return text
	}
	for _, needle := range h.needles {
		text = strings.ReplaceAll(text, needle, hidden)
	}
	return text
}

// header takes the secrets out of all values of a header. Most values are shorter than any
// secret, so that this costs next to nothing.
func (h *hider) header(header http.Header) {
	if h == nil {
		return
	}
	for _, values := range header {
		for i, value := range values {
			if len(value) >= h.least {
				values[i] = h.text(value)
			}
		}
	}
}

// error takes the secrets out of the body of an answer that is no success. The body of a
// success is what the model says, and its streams are not to be held up: it stays as it is. A
// body that is compressed although nobody has asked for that is unpacked, or, where that is not
// gzip, left out.
func (h *hider) error(response *http.Response, body io.Reader) io.Reader {
	if h == nil || response.StatusCode < http.StatusMultipleChoices {
		return body
	}
	switch encoding := response.Header.Get("Content-Encoding"); {
	case encoding == "" || strings.EqualFold(encoding, "identity"):
	case strings.EqualFold(encoding, "gzip") || strings.EqualFold(encoding, "x-gzip"):
		body = &unpacked{body: body}
	default:
		body = http.NoBody
	}
	response.Header.Del("Content-Encoding")
	response.Header.Del("Content-Length")
	response.ContentLength = -1
	return &hiding{hider: h, body: body}
}

// unpacked is a body in gzip, which is read from when it is read.
type unpacked struct {
	body io.Reader
	zip  *gzip.Reader
}

func (u *unpacked) Read(p []byte) (n int, err error) {
	if u.zip == nil {
		if u.zip, err = gzip.NewReader(u.body); err != nil {
			return 0, io.EOF // it is empty, or no gzip: nothing of it may be shown
		}
	}
	return u.zip.Read(p)
}

// hiding is a body without the secrets. It holds back what may be the beginning of one
// until more of the body comes: at most a byte less than the longest needle.
type hiding struct {
	*hider
	body  io.Reader
	held  []byte // may be the beginning of a secret
	ready []byte // may be read
	err   error  // of body
}

func (h *hiding) Read(p []byte) (int, error) {
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

// fill reads some of the body.
func (h *hiding) fill() {
	var room [4 << 10]byte
	var n int
	n, h.err = h.body.Read(room[:])
	text := append(h.held, room[:n]...)
	for _, needle := range h.needles {
		text = bytes.ReplaceAll(text, []byte(needle), []byte(hidden))
	}
	h.held = nil
	if h.err == nil {
		end := len(text) - h.begun(text)
		h.held = bytes.Clone(text[end:])
		text = text[:end]
	}
	h.ready = text
}

// begun returns how many bytes at the end of a text are the beginning of a needle.
func (h *hiding) begun(text []byte) (most int) {
	for _, needle := range h.needles {
		for n := min(len(needle)-1, len(text)); n > most; n-- {
			if string(text[len(text)-n:]) == needle[:n] {
				most = n
			}
		}
	}
	return most
}
