package call

import (
	"net/http"
	"testing"
)

func TestSigned(t *testing.T) {
	for _, test := range []struct {
		name   string
		header http.Header
		query  string
		want   bool
	}{
		{"nothing", nil, "", false},
		{"a key", http.Header{"Authorization": {"Bearer AWS4-HMAC-SHA256"}, "X-Api-Key": {"k"}}, "key=k", false},
		{"AWS", http.Header{"Authorization": {"AWS4-HMAC-SHA256 Credential=…"}}, "", true},
		{"AWS, in small letters", http.Header{"Authorization": {"aws4-hmac-sha256 Credential=…"}}, "", true},
		{"AWS, with an elliptic curve", http.Header{"Authorization": {"AWS4-ECDSA-P256-SHA256 Credential=…"}}, "", true},
		{"AWS, in the query", nil, "a=b&X-Amz-Signature=0f", true},
		{"AWS's hash of the body", http.Header{"X-Amz-Content-Sha256": {"0f"}}, "", true},
		{"AWS's session", http.Header{"X-Amz-Security-Token": {"t"}}, "", true},
		{"Google's cloud storage", http.Header{"Authorization": {"GOOG4-HMAC-SHA256 Credential=…"}}, "", true},
		{"the second of two", http.Header{"Authorization": {"Bearer k", "Signature keyId=…"}}, "", true},
		{"RFC 9421", http.Header{"Signature": {"sig=:…:"}}, "", true},
		{"RFC 9530", http.Header{"Content-Digest": {"sha-256=:…:"}}, "", true},
		{"an old hash of the body", http.Header{"Content-Md5": {"…"}}, "", true},
		{"a wish for a hash of the answer", http.Header{"Want-Digest": {"sha-256"}, "Want-Content-Digest": {"sha-256=1"}}, "", false},
	} {
		if got := Signed(test.header, test.query); got != test.want {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
}
