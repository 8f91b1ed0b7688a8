package issuer

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Client is the gateway as the identity provider knows it.
type Client struct {
	ID       string
	Secret   string // empty: the client has none
	Redirect string // where the provider sends the browser back to
	Scopes   []string
}

// Login is the sign-in of one user that has begun. The browser keeps it until the provider sends it back.
type Login struct {
	State    string `json:"state"`    // comes back with the code, so that nobody else's code is taken
	Nonce    string `json:"nonce"`    // comes back in the token, so that no other token is taken
	Verifier string `json:"verifier"` // without which nobody can use the code (PKCE, RFC 7636)
}

// Begin returns a sign-in, and the URL of the identity provider to which the browser goes for it.
func (i *Issuer) Begin(c Client) (Login, string, error) {
	d, err := i.endpoints()
	if err != nil {
		return Login{}, "", err
	}
	u, err := url.Parse(d.Authorize)
	if err != nil {
		return Login{}, "", fmt.Errorf("%w: its address for sign-ins is not valid", ErrUnavailable)
	}
	login := Login{State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text()}
	challenge := sha256.Sum256([]byte(login.Verifier))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": c.ID, "redirect_uri": c.Redirect, "scope": strings.Join(c.Scopes, " "), "state": login.State, "nonce": login.Nonce,
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return login, u.String(), nil
}

// Finish returns the claims about the user who has signed in, for the state and the code with which the provider has sent
// the browser back.
func (i *Issuer) Finish(ctx context.Context, c Client, login Login, state, code string) (Claims, error) {
	if login.State == "" || subtle.ConstantTimeCompare([]byte(state), []byte(login.State)) != 1 || code == "" {
		return nil, fmt.Errorf("%w: it is not the sign-in that this browser has begun", ErrInvalid)
	}
	d, err := i.endpoints()
	if err != nil {
		return nil, err
	}
	text, err := i.exchange(ctx, d, c, login, code)
	if err != nil {
		return nil, err
	}
	claims, err := i.Verify(ctx, text)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare([]byte(claims.Text("nonce")), []byte(login.Nonce)) != 1 {
		return nil, fmt.Errorf("%w: it is of another sign-in", ErrInvalid)
	}
	if aud := claims.List("aud"); len(aud) > 1 && claims.Text("azp") != c.ID || !slices.Contains(aud, c.ID) {
		return nil, fmt.Errorf("%w: it is for another audience", ErrInvalid)
	}
	return claims, nil
}

// exchange returns the token about the user for a code.
func (i *Issuer) exchange(ctx context.Context, d discovery, c Client, login Login, code string) (string, error) {
	if err := CheckURL(d.Token); err != nil {
		return "", fmt.Errorf("%w: its address for tokens: %v", ErrUnavailable, err)
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {c.Redirect}, "client_id": {c.ID}, "code_verifier": {login.Verifier}}
	inForm := slices.Contains(d.Methods, "client_secret_post") // without a word of it, the header is what all take
	if c.Secret != "" && inForm {
		form.Set("client_secret", c.Secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Token, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if c.Secret != "" && !inForm {
		req.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret))
	}
	var answer struct {
		Token string `json:"id_token"`
	}
	if err := i.do(req, &answer); err != nil {
		return "", fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	if answer.Token == "" {
		return "", errors.Join(ErrUnavailable, errors.New("it answers without a token: the scope openid may be missing"))
	}
	return answer.Token, nil
}

// endpoints returns the issuer's configuration, which is fetched as seldom as its keys are.
func (i *Issuer) endpoints() (discovery, error) {
	i.discovering.Lock()
	defer i.discovering.Unlock()
	now := time.Now()
	if i.discovered != nil && now.Sub(i.discoveredAt) < refreshEvery || !i.discoveredAt.IsZero() && now.Sub(i.discoveredAt) < retryEvery {
		if i.discovered == nil {
			return discovery{}, ErrUnavailable
		}
		return *i.discovered, nil
	}
	i.discoveredAt = now
	d, err := i.discover()
	if err == nil {
		err = CheckURL(d.Authorize)
	}
	if err != nil {
		return discovery{}, fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	i.discovered = &d
	return d, nil
}
