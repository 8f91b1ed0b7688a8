package identity

import (
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"
)

// signIn has a user sign in who is an administrator, and returns whether that began a session, and what the browser was
// answered.
func (r *rig) signIn(t *testing.T) (signedIn bool, status int, text string) {
	t.Helper()
	r.id.QueueUser(&mockoidc.MockUser{Subject: "1", Email: "alice@example.com", Groups: []string{"sre"}})
	b := browser(t)
	status, text = get(t, b, r.admin+"/login")
	return r.sessionOf(t, b).SignedIn, status, text
}

// rotate replaces the key with which the provider signs, and returns the one before.
func (r *rig) rotate(t *testing.T) *mockoidc.Keypair {
	t.Helper()
	next, err := mockoidc.RandomKeypair(2048)
	if err != nil {
		t.Fatal(err)
	}
	before := r.id.Keypair
	r.id.Keypair = next
	return before
}

// A provider that replaces its key needs no restart of the gateway: the first token with the new key has the keys
// fetched, for callers and for users who sign in. Tokens of the key that is gone are refused from then on.
func TestRotation(t *testing.T) {
	r := start(t)
	withdrawn := r.token(t, nil)
	if got := r.call(t, withdrawn); got != 200 {
		t.Errorf("before the rotation, a caller gets %d", got)
	}
	if ok, status, text := r.signIn(t); !ok {
		t.Errorf("before the rotation, a user gets %d %s", status, text)
	}
	old := r.rotate(t)
	if got := r.call(t, withdrawn); got != 200 {
		t.Errorf("a caller whose token was verified with known keys gets %d", got)
	}
	if got := r.call(t, r.token(t, nil)); got != 200 {
		t.Errorf("with the new key, a caller gets %d", got)
	}
	if ok, status, text := r.signIn(t); !ok {
		t.Errorf("with the new key, a user gets %d %s", status, text)
	}
	if got := r.call(t, withdrawn); got != 401 {
		t.Errorf("with the old key, a caller gets %d", got)
	}
	r.replace = func(claims jwt.MapClaims) (string, error) { return old.SignJWT(claims) }
	if ok, status, text := r.signIn(t); ok || status != 403 {
		t.Errorf("with the old key, a user gets %d %s", status, text)
	}
}

// A user's token of another audience, issuer, sign-in, algorithm or key begins no session, and the provider's clock may
// differ by less than a minute.
func TestTokensOfUsers(t *testing.T) {
	r := start(t)
	stranger, err := mockoidc.RandomKeypair(2048)
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string, value any) func(jwt.MapClaims) (string, error) {
		return func(claims jwt.MapClaims) (string, error) {
			claims[name] = value
			return r.id.Keypair.SignJWT(claims)
		}
	}
	for name, c := range map[string]struct {
		ahead   time.Duration // by which the provider's clock is
		replace func(jwt.MapClaims) (string, error)
		want    bool
	}{
		"valid":                      {0, nil, true},
		"a clock that is ahead":      {30 * time.Second, nil, true},
		"a clock that is far ahead":  {5 * time.Minute, nil, false},
		"a clock that is behind":     {-10*time.Minute - 30*time.Second, nil, true}, // its tokens are valid for ten minutes
		"a clock that is far behind": {-15 * time.Minute, nil, false},
		"another audience":           {0, with("aud", "somebody"), false},
		"two audiences":              {0, with("aud", []string{r.id.ClientID, "somebody"}), false},
		"another issuer":             {0, with("iss", "https://evil.example"), false},
		"another sign-in":            {0, with("nonce", "another"), false},
		"a key of a stranger":        {0, func(claims jwt.MapClaims) (string, error) { return stranger.SignJWT(claims) }, false},
		"a shared secret": {0, func(claims jwt.MapClaims) (string, error) {
			return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(r.id.ClientSecret))
		}, false},
		"no signature": {0, func(claims jwt.MapClaims) (string, error) {
			return jwt.NewWithClaims(jwt.SigningMethodNone, claims).SignedString(jwt.UnsafeAllowNoneSignatureType)
		}, false},
	} {
		r.replace = c.replace
		r.id.FastForward(c.ahead)
		ok, status, text := r.signIn(t)
		r.id.FastForward(-c.ahead)
		if ok != c.want || !ok && status != 403 {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}
