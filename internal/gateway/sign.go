package gateway

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/sigv4"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// signatureParameters are the parameters of a query with AWS's Signature Version 4.
var signatureParameters = []string{
	"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature", "X-Amz-Security-Token",
}

// signerOf returns the signer of calls to a deployment, or nil if they are not signed.
// Signers and their credentials outlive a configuration.
func (g *Gateway) signerOf(d *config.Deployment) *sigv4.Signer {
	if !d.Signed() {
		return nil
	}
	account := sigv4.Account{Region: d.Region}
	if d.AWS != nil {
		account.Profile, account.RoleARN = d.AWS.Profile, d.AWS.RoleARN
	}
	if g.signers[account] == nil {
		g.signers[account] = sigv4.New(account)
	}
	return g.signers[account]
}

// sign signs a request, if the deployment has a signer. The request must not change
// afterwards.
func (x *exchange) sign(d *deployment, out *http.Request, body io.ReadCloser) error {
	if d.signer == nil {
		return nil
	}
	var pieces wire.Pieces
	if body, ok := body.(*wire.Pieces); ok {
		pieces = *body
	}
	token, err := d.signer.Sign(x.ctx, out, pieces...)
	x.hider = d.session.of(token)
	return err
}

// sessionHider caches the hider of a session token, which signs many calls before it expires.
type sessionHider struct{ last atomic.Pointer[tokenHider] }

type tokenHider struct {
	token string
	*hider
}

// of returns the hider of a token.
func (s *sessionHider) of(token string) *hider {
	h := s.last.Load()
	if h == nil || h.token != token {
		h = &tokenHider{token, newHider(token)}
		s.last.Store(h)
	}
	return h.hider
}

// passBody returns the body of a request that is no call of a model, and its length. The body
// is forwarded as it comes, unless it has to be signed.
func (x *exchange) passBody(d *deployment, body *upload) (io.ReadCloser, int64, *refusal) {
	switch {
	case x.r.ContentLength == 0:
		return http.NoBody, 0, nil
	case x.body != nil: // it was read
		return &wire.Pieces{x.body}, int64(len(x.body)), nil
	case d.signer == nil:
		return body, x.r.ContentLength, nil
	}
	if refused := x.readBody(); refused != nil {
		return nil, 0, refused
	}
	return &wire.Pieces{x.body}, int64(len(x.body)), nil
}

// amazonSigned reports whether the client has signed the request with AWS's Signature
// Version 4.
func (x *exchange) amazonSigned() bool {
	return strings.HasPrefix(x.r.Header.Get("Authorization"), "AWS4-")
}

// checkSignature refuses a request with a client's signature for Bedrock that cannot be valid
// there: a signature covers the host, and the client has signed the gateway's.
func (x *exchange) checkSignature() *refusal {
	if x.upstream == nil || x.upstream.Kind != dialect.Bedrock || !x.amazonSigned() {
		return nil
	}
	for _, d := range x.upstream.deployments {
		if !x.usesGatewayAccount(d) && x.r.Host != d.base.Host {
			return refusalf(http.StatusForbidden, "the request is signed (AWS Signature Version 4) for the host %.100q, which Bedrock would refuse: "+
				"send a key of Bedrock as a bearer token (AWS_BEARER_TOKEN_BEDROCK), or have the gateway sign, by a region in its configuration", x.r.Host)
		}
	}
	return nil
}

// keyNeeded says that a virtual key is needed, and how to send one in place of a signature.
func (x *exchange) keyNeeded() string {
	if x.amazonSigned() {
		return "the request is signed (AWS Signature Version 4), from which the gateway cannot see who calls: send a virtual key in its place, " +
			"as a bearer token (AWS's SDKs take it from AWS_BEARER_TOKEN_BEDROCK) or in the header X-Api-Key"
	}
	if x.clientLogin() {
		return "a valid virtual key is needed in the header X-Gateway-Key, beside your own login to the provider"
	}
	return "a valid virtual key is needed, in place of the provider's key"
}
