package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Secret is the key with which messages are signed. Sender and receiver share it.
type Secret struct{ key []byte }

// secretPrefix begins the text of every secret.
const secretPrefix = "whsec_"

// ParseSecret reads a secret in the form of Standard Webhooks: whsec_ and 24 to 64 bytes in base64.
// The error does not show the text.
func ParseSecret(text string) (Secret, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil || len(key) < 24 || len(key) > 64 {
		return Secret{}, errors.New("ratelimit: the secret of a webhook must be whsec_ and 24 to 64 random bytes in base64")
	}
	return Secret{key}, nil
}

// String hides the secret.
func (Secret) String() string { return "[secret]" }

// sign returns the signature of a message.
func (s Secret) sign(id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// The headers of a message.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
)

// setHeaders signs a message that is sent now.
func (s Secret) setHeaders(h http.Header, id string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	h.Set(headerID, id)
	h.Set(headerTimestamp, timestamp)
	h.Set(headerSignature, "v1,"+base64.StdEncoding.EncodeToString(s.sign(id, timestamp, body)))
}

// Tolerance is how much the time of a message may differ from a receiver's clock.
const Tolerance = 5 * time.Minute

// Verify returns nil if a message that a receiver has got was signed with the secret, and not long
// ago. now is the receiver's time. A message may come twice, with the same webhook-id.
func (s Secret) Verify(h http.Header, body []byte, now time.Time) error {
	id, timestamp := h.Get(headerID), h.Get(headerTimestamp)
	if id == "" || timestamp == "" {
		return fmt.Errorf("ratelimit: the message has no %s or no %s", headerID, headerTimestamp)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("ratelimit: %s is %.40q: it must be a time in Unix seconds", headerTimestamp, timestamp)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > Tolerance || age < -Tolerance {
		return fmt.Errorf("ratelimit: the message was signed at %s, too far from %s", time.Unix(seconds, 0).UTC(), now.UTC())
	}
	want := s.sign(id, timestamp, body)
	for signature := range strings.FieldsSeq(h.Get(headerSignature)) {
		encoded, found := strings.CutPrefix(signature, "v1,")
		got, err := base64.StdEncoding.DecodeString(encoded)
		if found && err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return fmt.Errorf("ratelimit: no signature in %s is one of this message with this secret", headerSignature)
}
