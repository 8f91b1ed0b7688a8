// Package issuer verifies the tokens of an identity provider (JWT, RFC 7519) with the keys that it publishes, and signs
// users in with it (OpenID Connect).
package issuer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Algorithms are the signatures that can be allowed. Those with a shared secret are not among them: whoever knows the
// secret could make tokens.
var Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// DefaultAlgorithms are those that are allowed unless the configuration names others.
var DefaultAlgorithms = []string{"RS256", "ES256", "EdDSA"}

// Skew is by how much the clocks of an issuer and of the gateway may differ.
const Skew = time.Minute

// Errors of tokens. Neither contains anything of a token.
var (
	ErrInvalid     = errors.New("ratelimit: the token is not valid")
	ErrUnavailable = errors.New("ratelimit: the keys of the token's issuer cannot be fetched")
)

// Config describes an issuer, and which of its tokens are taken.
type Config struct {
	Issuer     string   // the claim iss of its tokens, and the URL below which its configuration is found
	JWKS       string   // the URL of its keys; empty: the one that its configuration names
	Audiences  []string // one of them must be in the claim aud
	Algorithms []string // which signatures are taken; empty: DefaultAlgorithms
}

// Issuer verifies the tokens of one identity provider. Its methods may be called concurrently.
type Issuer struct {
	cfg        Config
	algorithms []jose.SignatureAlgorithm
	http       *http.Client
	keys       keySet

	discovering  sync.Mutex // locked while the issuer's configuration is fetched
	discovered   *discovery // nil: it was not fetched yet
	discoveredAt time.Time  // when it was fetched last, or could not be

	mu       sync.Mutex
	verified map[[sha256.Size]byte]verified // tokens that were found valid, which clients send again and again
}

// verified is what was found in a valid token.
type verified struct {
	claims  Claims
	keys    *published // by whose keys
	expires time.Time
}

// maxVerified is how many tokens are remembered, and maxToken how many bytes a token may have.
const (
	maxVerified = 4096
	maxToken    = 16 << 10
)

// New returns an issuer. It fetches nothing before the first token comes.
func New(cfg Config) *Issuer {
	i := &Issuer{cfg: cfg, verified: map[[sha256.Size]byte]verified{}}
	if len(cfg.Algorithms) == 0 {
		cfg.Algorithms = DefaultAlgorithms
	}
	for _, name := range cfg.Algorithms {
		i.algorithms = append(i.algorithms, jose.SignatureAlgorithm(name))
	}
	i.http = &http.Client{
		Timeout:       fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects, which is not followed") },
	}
	i.keys.fetch = i.fetchKeys
	return i
}

// Looks reports whether a text has the form of a signed token.
func Looks(text string) bool {
	return strings.HasPrefix(text, "eyJ") && strings.Count(text, ".") == 2 && len(text) <= maxToken
}

// Verify returns the claims of a token, if it is valid now: its signature, its issuer, its audience and its times. An
// error is ErrInvalid, or ErrUnavailable if the issuer's keys are not known.
func (i *Issuer) Verify(ctx context.Context, text string) (Claims, error) {
	hash, now := sha256.Sum256([]byte(text)), time.Now()
	i.mu.Lock()
	known, ok := i.verified[hash]
	i.mu.Unlock()
	if ok && now.Before(known.expires) && i.keys.current(now) == known.keys {
		return known.claims, nil
	}
	v, err := i.verify(text, now)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.verified) >= maxVerified {
		clear(i.verified)
	}
	i.verified[hash] = v
	return v.claims, nil
}

// verify is Verify of a token that is not remembered.
func (i *Issuer) verify(text string, now time.Time) (verified, error) {
	token, err := jwt.ParseSigned(text, i.algorithms)
	if err != nil || len(token.Headers) != 1 {
		return verified{}, fmt.Errorf("%w: it is not a token that is signed with %s", ErrInvalid, joined(i.algorithms))
	}
	header := token.Headers[0]
	candidates, keys, err := i.keys.find(header.KeyID, header.Algorithm, now)
	if err != nil {
		return verified{}, err
	}
	v := verified{keys: keys}
	var standard jwt.Claims
	if !slices.ContainsFunc(candidates, func(k jose.JSONWebKey) bool { return token.Claims(k.Key, &standard, &v.claims) == nil }) {
		return verified{}, fmt.Errorf("%w: none of the issuer's keys has signed it", ErrInvalid)
	}
	if standard.Expiry == nil {
		return verified{}, fmt.Errorf("%w: it does not say when it expires", ErrInvalid)
	}
	v.expires = standard.Expiry.Time().Add(Skew)
	return v, i.check(&standard, now)
}

// check returns what is wrong with the standard claims of a token that the issuer has signed, or nil.
func (i *Issuer) check(c *jwt.Claims, now time.Time) error {
	err := c.ValidateWithLeeway(jwt.Expected{Issuer: i.cfg.Issuer, AnyAudience: i.cfg.Audiences, Time: now}, Skew)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jwt.ErrExpired):
		return fmt.Errorf("%w: it has expired", ErrInvalid)
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return fmt.Errorf("%w: it is not valid yet", ErrInvalid)
	case errors.Is(err, jwt.ErrInvalidAudience):
		return fmt.Errorf("%w: it is for another audience", ErrInvalid)
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return fmt.Errorf("%w: it comes from another issuer", ErrInvalid)
	}
	return ErrInvalid
}

func joined[T ~string](names []T) string {
	var all []string
	for _, name := range names {
		all = append(all, string(name))
	}
	return strings.Join(all, ", ")
}
