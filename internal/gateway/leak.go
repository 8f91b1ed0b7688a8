package gateway

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
)

// redactKeys returns a text with *** in place of its virtual keys, and whether there were
// any. It also finds keys that are escaped as in URLs, any number of times; then it returns
// the text unescaped.
func redactKeys(text string) (string, bool) {
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
		clean.WriteString(plain[:at] + redacted)
		plain = plain[at+keys.Size:]
	}
	return clean.String() + plain, true
}

// holdsKey reports whether a text has a virtual key in it.
func holdsKey(text string) bool {
	_, holds := redactKeys(text)
	return holds
}

// fieldHoldsKey reports whether a header has a virtual key in a value, or in its name, which
// net/http has changed to capital letters.
func fieldHoldsKey(name string, values []string) bool {
	if len(name) >= keys.Size && holdsKey(strings.ToLower(name)) {
		return true
	}
	return slices.ContainsFunc(values, holdsKey)
}

// unescaped undoes the escaping of a URL until nothing well-formed is escaped any more. A
// client chooses how often a text is escaped, so one pass undoes all of it: the byte that the
// last three bytes stand for may complete an escape with the bytes before them.
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

// removeKeys deletes headers and parameters that have a virtual key in them, so that no
// provider gets one. It leaves keyFields alone, because authorize replaces them.
func (x *exchange) removeKeys() {
	maps.DeleteFunc(x.r.Header, func(name string, values []string) bool {
		return fieldHoldsKey(name, values) && !slices.Contains(keyFields, name)
	})
	if holdsKey(x.target.RawQuery) {
		pairs := slices.DeleteFunc(strings.Split(x.target.RawQuery, "&"), holdsKey)
		x.target.RawQuery = strings.Join(pairs, "&")
	}
}

// carriesKey reports whether a header or the query of the request has a virtual key in it.
func (x *exchange) carriesKey() bool {
	for name, values := range x.r.Header {
		if fieldHoldsKey(name, values) {
			return true
		}
	}
	return holdsKey(x.target.RawQuery)
}

// checkBodyForKeys refuses a body with a valid virtual key in it, which the provider must not
// see. A text that only has the form of a key may be an example in a prompt. The search is for
// the last byte of the prefix, the only one that is rare in texts.
func (x *exchange) checkBodyForKeys() *refusal {
	const last = len(keys.Prefix) - 1
	for at := last; at < len(x.body); at++ {
		next := bytes.IndexByte(x.body[at:], keys.Prefix[last])
		if next < 0 {
			return nil
		}
		at += next
		key := x.body[at-last:]
		if len(key) < keys.Size || !keys.Is(key[:keys.Size]) {
			continue
		}
		if _, valid := x.g.keys.Find(string(key[:keys.Size])); valid {
			return refusalf(http.StatusBadRequest, "the body has a valid virtual key in it, which the gateway does not forward: take it out, and replace the key if others have seen it")
		}
	}
	return nil
}
