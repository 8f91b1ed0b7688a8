package gateway

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/gateway/keys"
)

// withoutKeys returns a text in which *** stands in the place of virtual keys, and whether
// there were any. A key that is escaped as in URLs, however often, is found too: the text is
// returned unescaped then.
func withoutKeys(text string) (string, bool) {
	if len(text) < keys.Size {
		return text, false
	}
	plain := unescaped(text)
	at := keys.Index(plain)
	if at < 0 {
		return text, false
	}
	var clean strings.Builder
	for ; at >= 0; at = keys.Index(plain) {
		clean.WriteString(plain[:at] + hidden)
		plain = plain[at+keys.Size:]
	}
	return clean.String() + plain, true
}

// holdsKey reports whether a virtual key stands in a text.
func holdsKey(text string) bool {
	_, holds := withoutKeys(text)
	return holds
}

// fieldHoldsKey reports whether a virtual key stands in one of a header's values, most of which
// are too short for that, or is its name, which has capitals by now.
func fieldHoldsKey(name string, values []string) bool {
	if len(name) >= keys.Size && holdsKey(strings.ToLower(name)) {
		return true
	}
	for _, value := range values {
		if len(value) >= keys.Size && holdsKey(value) {
			return true
		}
	}
	return false
}

// unescaped undoes the escaping of a URL, as far as it is well-formed, until nothing in it is
// escaped any more. A client chooses how often a text is escaped, so all of it is undone in one
// pass: what the last three bytes stand for may complete an escape with the bytes before them.
func unescaped(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	plain := make([]byte, 0, len(text))
	for i := range len(text) {
		plain = append(plain, text[i])
		for at := len(plain) - 3; at >= 0 && plain[at] == '%' && unhex(plain[at+1]) >= 0 && unhex(plain[at+2]) >= 0; at = len(plain) - 3 {
			plain = append(plain[:at], byte(unhex(plain[at+1])<<4|unhex(plain[at+2])))
		}
	}
	return string(plain)
}

// unhex returns the value of a hexadecimal digit, or -1.
func unhex(c byte) int { return strings.IndexByte("0123456789abcdef", c|0x20) }

// keepKeys sees to it that no virtual key is sent on in a place where the gateway does not
// look for it: headers and parameters that hold one are taken out. fieldsOfKeys are not
// looked at, for they are replaced.
func (x *exchange) keepKeys() {
	if x.has&kindLeak != 0 {
		for name, values := range x.r.Header {
			if kindOf[name]&kindKey == 0 && fieldHoldsKey(name, values) {
				delete(x.r.Header, name)
			}
		}
	}
	if holdsKey(x.target.RawQuery) {
		pairs := slices.DeleteFunc(strings.Split(x.target.RawQuery, "&"), holdsKey)
		x.target.RawQuery = strings.Join(pairs, "&")
	}
}

// carriesKey reports whether a header or the query of the request holds a virtual key.
func (x *exchange) carriesKey() bool {
	if x.has&kindLeak != 0 {
		return true
	}
	for _, name := range fieldsOfKeys {
		if fieldHoldsKey(name, x.r.Header[name]) {
			return true
		}
	}
	return holdsKey(x.target.RawQuery)
}

// checkBody refuses a body that holds a valid virtual key, which the provider is not to see.
// What has the form of a key alone may be an example that somebody writes about. It looks for
// the last byte of the prefix, the only one that is rare in texts.
func (x *exchange) checkBody() *refusal {
	const last = len(keys.Prefix) - 1
	for at := last; at < len(x.body); at++ {
		next := bytes.IndexByte(x.body[at:], keys.Prefix[last])
		if next < 0 {
			return nil
		}
		at += next
		if key := x.body[at-last:]; len(key) >= keys.Size && keys.Is(key[:keys.Size]) && x.g.valid(string(key[:keys.Size])) {
			return x.bad(http.StatusBadRequest, "the body holds a valid virtual key, which is not sent on: take it out, and replace the key if others have seen it")
		}
	}
	return nil
}

// valid reports whether a text is a virtual key that is valid now.
func (g *Gateway) valid(key string) bool {
	_, ok := g.keys.Find(key)
	return ok
}
