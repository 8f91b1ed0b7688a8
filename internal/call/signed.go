package call

import (
	"net/http"
	"strings"
)

// SignatureFields are the headers that sign a request or hash its body, and those that
// belong to them: AWS's, those of RFC 9421 and RFC 9530, and older ones.
var SignatureFields = []string{
	"Signature", "Signature-Input", "Content-Digest", "Repr-Digest", "Digest", "Content-Md5",
	"Want-Content-Digest", "Want-Repr-Digest", "Want-Digest",
	"X-Amz-Content-Sha256", "X-Amz-Date", "X-Amz-Security-Token",
}

// Signed reports whether a request with these headers and this query carries a signature
// or a hash of its body. Such a request must be sent unchanged.
func Signed(h http.Header, query string) bool {
	for _, name := range SignatureFields {
		if h[name] != nil && !strings.HasPrefix(name, "Want-") {
			return true
		}
	}
	for _, value := range h["Authorization"] {
		scheme, _, _ := strings.Cut(strings.ToUpper(value), " ")
		if scheme == "SIGNATURE" || strings.HasPrefix(scheme, "AWS4-") || strings.Contains(scheme, "HMAC-") {
			return true
		}
	}
	return strings.Contains(query, "X-Amz-Signature=")
}
