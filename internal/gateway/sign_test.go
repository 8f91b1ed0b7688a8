package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// credentials are the gateway's credentials in these tests.
var credentials = aws.Credentials{AccessKeyID: "AKIDGATEWAY", SecretAccessKey: "the-secret-of-the-gateway", SessionToken: "the-session-of-the-gateway"}

// useCredentials sets credentials in the environment, and clears whatever else AWS's SDK looks
// for.
func useCredentials(t *testing.T, c aws.Credentials) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": c.AccessKeyID, "AWS_SECRET_ACCESS_KEY": c.SecretAccessKey, "AWS_SESSION_TOKEN": c.SessionToken,
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "", "AWS_REGION": "",
	} {
		t.Setenv(name, value)
	}
}

// amazon is a mock of Bedrock that accepts only requests with the right signature.
type amazon struct {
	t     *testing.T
	mock  http.Handler
	taken atomic.Int64
}

func (a *amazon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if diff := cmp.Diff(a.signature(r, body), r.Header.Get("Authorization")); diff != "" {
		a.t.Errorf("the signature of %s %s: want (-), got (+):\n%s", r.Method, r.RequestURI, diff)
		w.WriteHeader(http.StatusForbidden)
		return
	}
	a.taken.Add(1)
	a.mock.ServeHTTP(w, r)
}

// signature returns the signature that AWS's own signer computes for a request that has
// arrived.
func (a *amazon) signature(r *http.Request, body []byte) string {
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.RequestURI, bytes.NewReader(body))
	if err != nil {
		a.t.Error(err)
		return ""
	}
	signed := regexp.MustCompile(`SignedHeaders=([^,]*)`).FindStringSubmatch(r.Header.Get("Authorization"))
	if signed == nil {
		return "a signature"
	}
	for name := range strings.SplitSeq(signed[1], ";") {
		if values := r.Header.Values(name); values != nil {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		a.t.Error(err)
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(a.t.Context(), credentials, again, hex.EncodeToString(sum[:]), "bedrock", "eu-north-1", at); err != nil {
		a.t.Error(err)
	}
	return again.Header.Get("Authorization")
}

const conversing = `{"messages":[{"role":"user","content":[{"text":"hello"}]}]}`

const signing = `
providers:
  bedrock: {kind: bedrock, base_url: MOCK, region: eu-north-1, models: {"*": {max_rpm: 100}}}
`

// The gateway signs calls of Bedrock itself, however their paths are escaped. It forwards no
// signature of a client.
func TestCallsOfBedrockAreSigned(t *testing.T) {
	useCredentials(t, credentials)
	bedrock := &amazon{t: t, mock: mockprovider.New(mockprovider.Config{})}
	r := newRigBefore(t, "keys: required"+signing, bedrock)
	key, _ := r.newKey(t, "acme", "test")
	for i, call := range []struct{ method, path, body string }{
		{"POST", "/model/amazon.nova-v1:0/converse", conversing},
		{"POST", "/model/amazon.nova-v1%3A0/converse-stream", conversing},
		{"POST", "/model/arn%3Aaws%3Abedrock%3Aeu-north-1%3A%3Afoundation-model%2Famazon.nova-v1%3A0/converse", conversing},
		{"POST", "/model/m/invoke", `{"max_tokens":9,"messages":[]}`},
		{"POST", "/model/m/invoke-with-response-stream?a=b%20c&a=a", `{"max_tokens":9,"messages":[]}`},
		{"POST", "/openai/v1/chat/completions", `{"model":"m","messages":[],"stream":true}`},
		{"POST", "/openai/v1/chat/completions", `{"model":"m","messages":[],"stream":true}` + strings.Repeat(" ", 1<<20)}, // larger than what is sent in one write
		{"POST", "/v1/messages/count_tokens", `{"messages":[]}`},                                                          // no call of a model
		{"GET", "/models", ""},
	} {
		got := r.do(t, call.method, "/bedrock"+call.path, call.body, "Authorization", "Bearer "+key, "X-Amz-Security-Token", "the client's", "X-Amz-Date", "20200101T000000Z", "X-Amzn-Bedrock-Trace", "ENABLED")
		if got.status != http.StatusOK || bedrock.taken.Load() != int64(i+1) {
			t.Errorf("%s %s: %d %s", call.method, call.path, got.status, got.body)
		}
	}
}

// Calls are signed with the credentials of a profile. Without credentials, nothing is sent or
// charged.
func TestCredentialsOfAProfile(t *testing.T) {
	useCredentials(t, aws.Credentials{})
	file := filepath.Join(t.TempDir(), "credentials")
	text := "[gateway]\naws_access_key_id = " + credentials.AccessKeyID + "\naws_secret_access_key = " + credentials.SecretAccessKey + "\naws_session_token = " + credentials.SessionToken + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	bedrock := &amazon{t: t, mock: mockprovider.New(mockprovider.Config{})}
	r := newRigBefore(t, signing+"  other: {kind: bedrock, base_url: MOCK, region: eu-north-1, aws: {profile: gateway}}\n", bedrock)
	if got := r.post(t, "/other/model/m/converse", conversing); got.status != http.StatusOK || bedrock.taken.Load() != 1 {
		t.Errorf("%d %s", got.status, got.body)
	}
	got := r.post(t, "/bedrock/model/m/converse", conversing)
	if got.status != http.StatusBadGateway || !strings.Contains(r.last(t).Error, "no credentials of AWS") || bedrock.taken.Load() != 1 {
		t.Errorf("%d %s, recorded as %+v", got.status, got.body, r.last(t))
	}
	if s := r.Models().Stats("bedrock/*"); s.RPM != 0 {
		t.Errorf("what was not sent is charged: %+v", s)
	}
}

// Clients do not get the session token, which AWS quotes when it refuses a signature.
func TestASessionTokenIsHidden(t *testing.T) {
	useCredentials(t, credentials)
	r := newRigBefore(t, signing, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"message":"The canonical string should have been 'x-amz-security-token:`+r.Header.Get("X-Amz-Security-Token")+`'"}`)
	}))
	if got := r.post(t, "/bedrock/model/m/converse", conversing); got.status != http.StatusForbidden || strings.Contains(got.body, credentials.SessionToken) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A client's own signature cannot be valid at another host. The request is refused before
// anything is charged or sent.
func TestASignatureOfTheClientsOwnIsRefused(t *testing.T) {
	seen := newSeen()
	r := newRigBefore(t, `providers: {bedrock: {kind: bedrock, base_url: MOCK}, openai: {base_url: MOCK}}`, seen)
	const signature = "AWS4-HMAC-SHA256 Credential=AKID/20261116/eu-north-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=00"
	got := r.post(t, "/bedrock/model/m/converse", conversing, "Authorization", signature, "X-Amz-Date", "20261116T000000Z")
	if got.status != http.StatusForbidden || got.header.Get("X-Amzn-Errortype") != "AccessDeniedException" || !strings.Contains(got.body, "AWS_BEARER_TOKEN_BEDROCK") || len(seen.requests) != 0 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.post(t, "/bedrock/model/m/converse", conversing, "Authorization", "Bearer a key of Bedrock"); got.status != http.StatusOK || (<-seen.requests).Header.Get("Authorization") != "Bearer a key of Bedrock" {
		t.Errorf("a key of the client's own: %d %s", got.status, got.body)
	}
	if got := r.post(t, "/openai/v1/chat/completions", `{"model":"m"}`, "Authorization", signature); got.status != http.StatusOK {
		t.Errorf("another provider: %d %s", got.status, got.body)
	}
}

// A stream in both directions, whose tokens cannot be counted, is refused.
func TestStreamsInBothDirectionsAreRefused(t *testing.T) {
	seen := newSeen()
	r := newRigBefore(t, `providers: {bedrock: {kind: bedrock, base_url: MOCK}}`, seen)
	if got := r.post(t, "/bedrock/model/m/Invoke-With-Bidirectional-Stream/", "x"); got.status != http.StatusBadRequest || len(seen.requests) != 0 {
		t.Errorf("in another case: %d %s", got.status, got.body)
	}
	if got := r.post(t, "/bedrock/model/m/invoke-with-bidirectional-stream", "x"); got.status != http.StatusBadRequest || len(seen.requests) != 0 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
