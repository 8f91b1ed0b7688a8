package gateway

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// ofSigned are headers of signed requests, which must be sent unchanged.
var ofSigned = [][]string{
	{"Digest", "SHA-256=x"}, {"Content-Digest", "sha-256=:x:"}, {"Repr-Digest", "sha-256=:x:"}, {"Content-MD5", "x"},
	{"Signature", "sig1=:x:"}, {"Signature-Input", "sig1=()"}, {"X-Amz-Date", "20261116T000000Z"}, {"X-Amz-Content-Sha256", "x"},
	{"X-Amz-Security-Token", "x"}, {"Authorization", "AWS4-HMAC-SHA256 Credential=x"}, {"Authorization", "HMAC-SHA256 Credential=x"},
}

// No header keeps the gateway from asking for the usage of a stream with its own account.
// Once, 50,000 hidden tokens counted as one.
func TestNoHeaderSwitchesMeteringOff(t *testing.T) {
	t.Setenv("KEY", "sk-provider")
	asked := make(chan mockprovider.Call, 1)
	r := newRig(t, strings.ReplaceAll(budgeted, "base_url: MOCK", "base_url: MOCK, key: {env: KEY}"), mockprovider.Config{
		Script: func(c mockprovider.Call) mockprovider.Reply {
			asked <- c
			return mockprovider.Reply{Reasoning: 50_000, Output: 1}
		},
	})
	body := `{"model":"o5","stream":true,"messages":[{"role":"user","content":"Think"}]}`
	for _, header := range ofSigned {
		before := r.charged(t, "p")
		a := r.post(t, chat, body, append([]string{fieldProject, "p"}, header...)...)
		sent := <-asked
		if a.status != 200 || strings.Contains(a.body, "completion_tokens") || !sent.UsageAsked {
			t.Errorf("%s: %d, asked for usage: %v", header[0], a.status, sent.UsageAsked)
		}
		for _, name := range call.SignatureFields {
			if sent.Header[name] != nil {
				t.Errorf("%s: %s is sent", header[0], name)
			}
		}
		if got := sent.Header.Get("Authorization"); got != "Bearer sk-provider" {
			t.Errorf("%s: Authorization: %s", header[0], got)
		}
		if got := r.charged(t, "p") - before; got < 50_000 {
			t.Errorf("%s: %d tokens are charged", header[0], got)
		}
	}
}

// A request that its client has signed with credentials of its own is sent unchanged, and is
// charged what was reserved.
func TestSignedIsSentAsItIs(t *testing.T) {
	for _, header := range append(ofSigned, []string{"X-Unsigned", "x"}) {
		upstream := newSeen()
		r := newRigBefore(t, budgeted, upstream)
		path := chat
		if header[0] == "X-Unsigned" {
			path += "?X-Amz-Signature=x"
		}
		r.post(t, path, unasked, append([]string{"Accept-Encoding", "br", fieldProject, "p"}, header...)...)
		sent := <-upstream.requests
		testkit.Equal(t, "the body with "+header[0], unasked, <-upstream.bodies)
		if sent.Header.Get("Accept-Encoding") != "br" || sent.Header.Get(header[0]) != header[1] {
			t.Errorf("%s: sent with %v", header[0], sent.Header)
		}
	}

	r := newRig(t, budgeted, mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply {
		return mockprovider.Reply{Reasoning: 1000, Output: 1}
	}})
	body := `{"model":"o5","stream":true,"max_tokens":2000,"messages":[{"role":"user","content":"Think"}]}`
	r.post(t, chat, body, "X-Amz-Date", "20261116T000000Z", fieldProject, "p")
	if got := r.charged(t, "p"); got < 2000 {
		t.Errorf("%d tokens are charged", got)
	}
}

// A signed request that names an alias is refused, because replacing it would change what is
// signed.
func TestSignedAlias(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, oneOfEach, upstream)
	a := r.post(t, chat, `{"model":"best","messages":[]}`, "Signature", "sig1=:x:")
	if a.status != 400 || !strings.Contains(a.body, `must name the model as \"gpt-4o\"`) || len(upstream.requests) > 0 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// The gateway does not forward Range: a server would answer with a part of the body, without
// the usage at its end.
func TestAnswersComeWhole(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, budgeted, upstream)
	r.post(t, chat, hello, "Range", "bytes=0-99", "If-Range", "x", "Prefer", "respond-async", "Accept-Encoding", "br", "Priority", "u=1")
	sent := <-upstream.requests
	for _, name := range partialFields {
		if sent.Header[name] != nil {
			t.Errorf("%s is sent", name)
		}
	}
	if sent.Header.Get("Priority") != "u=1" {
		t.Errorf("sent with %v", sent.Header)
	}
	r.do(t, "GET", "/openai/v1/videos/video-1/content", "", "Range", "bytes=0-99")
	if sent := <-upstream.requests; sent.Header.Get("Range") != "bytes=0-99" {
		t.Errorf("a video is fetched with %v", sent.Header)
	}
}
