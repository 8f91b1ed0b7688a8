package issuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var rsaKey, _ = rsa.GenerateKey(rand.Reader, 2048)

// sign makes a token with a key of any kind.
func sign(t testing.TB, alg string, key any, id string, claims map[string]any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	if id != "" {
		options = options.WithHeader("kid", id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(alg), Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// claimsOf returns the claims of a token that is valid, with some that differ.
func claimsOf(more map[string]any) map[string]any {
	all := map[string]any{"iss": "https://id.example", "aud": "gateway", "exp": time.Now().Add(time.Hour).Unix(), "project": "acme"}
	for name, value := range more {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

// with returns an issuer whose keys are not fetched from a server.
func with(fetch func() ([]jose.JSONWebKey, error), cfg Config) *Issuer {
	cfg.Issuer, cfg.Audiences = "https://id.example", []string{"gateway", "other"}
	i := New(cfg)
	i.keys.fetch = fetch
	return i
}

func keysOf(keys ...jose.JSONWebKey) func() ([]jose.JSONWebKey, error) {
	return func() ([]jose.JSONWebKey, error) { return keys, nil }
}

func TestVerify(t *testing.T) {
	other, _ := rsa.GenerateKey(rand.Reader, 2048)
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	i := with(keysOf(
		jose.JSONWebKey{KeyID: "a", Key: rsaKey.Public(), Algorithm: "RS256"},
		jose.JSONWebKey{KeyID: "e", Key: ec.Public()},
	), Config{})
	public, _ := x509.MarshalPKIXPublicKey(rsaKey.Public())
	asSecret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	now := time.Now()
	unsigned := func(header string) string {
		body, _ := json.Marshal(claimsOf(nil))
		return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(body) + "."
	}
	good := sign(t, "RS256", rsaKey, "a", claimsOf(nil))
	for name, c := range map[string]struct{ token, want string }{
		"valid":                         {good, ""},
		"another kind of key":           {sign(t, "ES256", ec, "e", claimsOf(nil)), ""},
		"no key id":                     {sign(t, "ES256", ec, "", claimsOf(nil)), ""},
		"several audiences":             {sign(t, "RS256", rsaKey, "a", claimsOf(map[string]any{"aud": []string{"x", "other"}})), ""},
		"expired within the skew":       {sign(t, "RS256", rsaKey, "a", claimsOf(map[string]any{"exp": now.Add(-Skew / 2).Unix()})), ""},
		"not yet valid within the skew": {sign(t, "RS256", rsaKey, "a", claimsOf(map[string]any{"nbf": now.Add(Skew / 2).Unix()})), ""},

		"expired":                       {sign(t, "RS256", rsaKey, "a", claimsOf(map[string]any{"exp": now.Add(-2 * Skew).Unix()})), "it has expired"},
		"not yet valid":                 {sign(t, "RS256", rsaKey, "a", claimsOf(map[string]any{"nbf": now.Add(2 * Skew).Unix()})), "not valid yet"},
		"issued in the future":          {sign(t, "RS256", rsaKey, "a", claimsOf(map[string]any{"iat": now.Add(2 * Skew).Unix()})), "not valid yet"},
		"no expiry":                     {sign(t, "RS256", rsaKey, "a", claimsOf(map[string]any{"exp": nil})), "when it expires"},
		"another audience":              {sign(t, "RS256", rsaKey, "a", claimsOf(map[string]any{"aud": "x"})), "another audience"},
		"no audience":                   {sign(t, "RS256", rsaKey, "a", claimsOf(map[string]any{"aud": nil})), "another audience"},
		"another issuer":                {sign(t, "RS256", rsaKey, "a", claimsOf(map[string]any{"iss": "https://evil.example"})), "another issuer"},
		"no issuer":                     {sign(t, "RS256", rsaKey, "a", claimsOf(map[string]any{"iss": nil})), "another issuer"},
		"another key under this id":     {sign(t, "RS256", other, "a", claimsOf(nil)), "none of the issuer's keys"},
		"a key that is not published":   {sign(t, "RS256", other, "b", claimsOf(nil)), "none of the issuer's keys"},
		"no key id, and another key":    {sign(t, "RS256", other, "", claimsOf(nil)), "none of the issuer's keys"},
		"an algorithm of its own":       {sign(t, "PS256", rsaKey, "a", claimsOf(nil)), "not a token that is signed with RS256, ES256, EdDSA"},
		"a longer hash":                 {sign(t, "RS512", rsaKey, "a", claimsOf(nil)), "not a token that is signed with"},
		"the public key as a secret":    {sign(t, "HS256", asSecret, "a", claimsOf(nil)), "not a token that is signed with"},
		"no signature":                  {unsigned(`{"alg":"none","kid":"a"}`), "not a token that is signed with"},
		"no signature, said otherwise":  {unsigned(`{"alg":"RS256","kid":"a"}`), "none of the issuer's keys"},
		"other claims":                  {strings.Join([]string{strings.Split(good, ".")[0], strings.Split(unsigned("{}"), ".")[1] + "x", strings.Split(good, ".")[2]}, "."), ""},
		"no token":                      {"eyJ.a.b", "not a token that is signed with"},
		"nothing":                       {"", "not a token that is signed with"},
		"a signature of the empty text": {strings.Join(strings.Split(good, ".")[:2], ".") + ".", "none of the issuer's keys"},
	} {
		claims, err := i.Verify(t.Context(), c.token)
		switch {
		case name == "other claims":
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		case c.want == "" && (err != nil || claims.Text("project") != "acme"):
			t.Errorf("%s: %v %v", name, claims, err)
		case c.want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) || claims != nil):
			t.Errorf("%s: %v %v, want %s", name, claims, err, c.want)
		}
		if _, again := i.Verify(t.Context(), c.token); (again == nil) != (err == nil) {
			t.Errorf("%s, again: %v", name, again)
		}
	}
}

// A rotation needs no restart: a key that is not known is looked for, but strangers who invent ids of keys make the
// gateway fetch no more than four times a minute. A key that is withdrawn is not valid for longer than ten minutes,
// even for tokens that were seen before.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second, _ := rsa.GenerateKey(rand.Reader, 2048)
		one, two := jose.JSONWebKey{KeyID: "1", Key: rsaKey.Public()}, jose.JSONWebKey{KeyID: "2", Key: second.Public()}
		var keys atomic.Pointer[[]jose.JSONWebKey]
		keys.Store(&[]jose.JSONWebKey{one})
		var fetches, down atomic.Int64
		i := with(func() ([]jose.JSONWebKey, error) {
			fetches.Add(1)
			if down.Load() != 0 {
				return nil, errors.New("down")
			}
			return *keys.Load(), nil
		}, Config{})
		valid := func(token string) bool { _, err := i.Verify(t.Context(), token); return err == nil }
		old := sign(t, "RS256", rsaKey, "1", claimsOf(nil))
		if first, again := valid(old), valid(old); !first || !again || fetches.Load() != 1 {
			t.Errorf("%d fetches", fetches.Load())
		}
		keys.Store(&[]jose.JSONWebKey{one, two})
		next := sign(t, "RS256", second, "2", claimsOf(nil))
		if !valid(next) || !valid(old) || fetches.Load() != 2 {
			t.Errorf("after the rotation: %d fetches", fetches.Load())
		}
		for range 600 {
			time.Sleep(time.Second / 10)
			if valid(sign(t, "RS256", second, rand.Text(), claimsOf(nil))) {
				t.Fatal("a key that nobody has published")
			}
		}
		if n := fetches.Load() - 2; n > 4 {
			t.Errorf("strangers have made the gateway fetch %d times in a minute", n)
		}
		down.Store(1)
		time.Sleep(refreshEvery / 2)
		if !valid(old) || !valid(next) {
			t.Error("while the issuer is down, its tokens are not valid")
		}
		down.Store(0)
		keys.Store(&[]jose.JSONWebKey{two})
		time.Sleep(refreshEvery)
		valid(old) // which has the keys fetched
		synctest.Wait()
		if valid(old) || !valid(next) {
			t.Error("a key that was withdrawn is still valid")
		}
		time.Sleep(time.Hour)
		valid(next)
		synctest.Wait()
		if valid(next) {
			t.Error("a token that was seen before is valid after it has expired")
		}
	})
}

// While keys are fetched, tokens that name a known key do not wait.
func TestSlowIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		first := true
		i := with(func() ([]jose.JSONWebKey, error) {
			if !first {
				<-slow
			}
			first = false
			return []jose.JSONWebKey{{KeyID: "1", Key: rsaKey.Public()}}, nil
		}, Config{})
		token := sign(t, "RS256", rsaKey, "1", claimsOf(nil))
		if _, err := i.Verify(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		time.Sleep(retryEvery)
		go i.Verify(t.Context(), sign(t, "RS256", rsaKey, "unknown", claimsOf(nil)))
		synctest.Wait()
		for _, token := range []string{token, sign(t, "RS256", rsaKey, "1", claimsOf(map[string]any{"n": 2}))} {
			if _, err := i.Verify(t.Context(), token); err != nil {
				t.Error(err)
			}
		}
		close(slow)
	})
}

// The keys come from the issuer's configuration, which must be its own. What is too large, is no key for signatures,
// leads elsewhere or is not there is distinguished from a token that is not valid.
func TestFetch(t *testing.T) {
	var configuration, keys func(w http.ResponseWriter)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/id/.well-known/openid-configuration":
			configuration(w)
		case "/keys":
			keys(w)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	write := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.Write([]byte(text)) }
	}
	marshal := func(keys ...jose.JSONWebKey) string {
		text, _ := json.Marshal(jose.JSONWebKeySet{Keys: keys})
		return string(text)
	}
	good := `{"issuer": "` + server.URL + `/id", "jwks_uri": "` + server.URL + `/keys"}`
	public := jose.JSONWebKey{KeyID: "a", Key: rsaKey.Public(), Use: "sig"}
	token := sign(t, "RS256", rsaKey, "a", claimsOf(map[string]any{"iss": server.URL + "/id"}))
	for name, c := range map[string]struct {
		configuration, keys func(http.ResponseWriter)
		want                string
	}{
		"good":                         {write(good), write(marshal(public)), ""},
		"another issuer":               {write(strings.Replace(good, "/id", "/evil", 1)), write(marshal(public)), "is of the issuer"},
		"keys at another scheme":       {write(strings.Replace(good, `"jwks_uri": "http`, `"jwks_uri": "ftp`, 1)), write(marshal(public)), "https://"},
		"keys of another machine":      {write(`{"issuer": "` + server.URL + `/id", "jwks_uri": "http://192.0.2.1/keys"}`), write(marshal(public)), "https://"},
		"no JSON":                      {write("<html>"), write(marshal(public)), "not the JSON"},
		"no keys":                      {write(good), write(`{"keys": []}`), "publishes no key"},
		"a secret":                     {write(good), write(marshal(jose.JSONWebKey{KeyID: "a", Key: []byte("0123456789abcdef0123456789abcdef")})), "publishes no key"},
		"a private key":                {write(good), write(marshal(jose.JSONWebKey{KeyID: "a", Key: rsaKey})), "publishes no key"},
		"a key for another use":        {write(good), write(marshal(jose.JSONWebKey{KeyID: "a", Key: rsaKey.Public(), Use: "enc"})), "publishes no key"},
		"a document without end":       {write(good), write(`{"keys": "` + strings.Repeat("x", maxFetched) + `"}`), "not the JSON"},
		"a status":                     {write(good), func(w http.ResponseWriter) { w.WriteHeader(500) }, "status 500"},
		"a redirection to other hosts": {write(good), func(w http.ResponseWriter) { w.Header().Set("Location", "/x"); w.WriteHeader(302) }, "redirects"},
	} {
		configuration, keys = c.configuration, c.keys
		i := New(Config{Issuer: server.URL + "/id", Audiences: []string{"gateway"}})
		_, err := i.Verify(t.Context(), token)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
		i.http.CloseIdleConnections()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestClaims(t *testing.T) {
	var c Claims
	json.Unmarshal([]byte(`{"project": "acme", "https://x.example/team": "a/b", "groups": ["one", 2, "", "two"], "single": ["s"], "scope": "a b", "realm": {"roles": ["r"], "deep": {"x": "y"}}, "n": 5}`), &c)
	for name, want := range map[string]string{"project": "acme", "https://x.example/team": "a/b", "groups": "", "single": "s", "realm.roles": "r", "realm.deep.x": "y", "n": "", "none": "", "realm": "", "realm.none.x": "", "project.x": ""} {
		if got := c.Text(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"groups": "one two", "scope": "a b", "realm.roles": "r", "n": "", "none": ""} {
		if got := strings.Join(c.List(name), " "); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
