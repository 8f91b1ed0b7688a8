package admin

import (
	"context"
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
)

// TokenList is a page of the tokens of this API. That of the configuration, admin.token, is not among them.
type TokenList struct {
	Tokens []keys.Key `json:"tokens"`
	Next   string     `json:"next,omitempty"` // the parameter after of the next page; empty: this is the last
}

// NewToken is a request for a token.
type NewToken struct {
	Name    string    `json:"name"` // what it is for, which the audit log has
	Role    keys.Role `json:"role"`
	Project string    `json:"project,omitempty"` // to which it is bound, with all below it; empty: all projects
	TTL     Seconds   `json:"ttl,omitempty"`     // how long the token is valid; 0: forever
}

func (a *Admin) tokens(r *http.Request) (any, error) {
	list, next, err := pageOf(r, a.gateway.Tokens().List(), func(k keys.Key) string { return k.ID })
	return TokenList{append([]keys.Key{}, list...), next}, err
}

func (a *Admin) createToken(r *http.Request) (any, error) {
	ask, err := decode[NewToken](r)
	if err != nil {
		return nil, err
	}
	return a.issue(r, change{action: "token.create", subject: ask.Name}, func(ctx context.Context) (string, keys.Key, error) {
		return a.gateway.Tokens().CreateKey(ctx, keys.Key{Name: ask.Name, Role: ask.Role, Project: ask.Project}, time.Duration(ask.TTL))
	})
}

// Tokens returns all tokens.
func (c *Client) Tokens(ctx context.Context) ([]keys.Key, error) {
	page, err := get[TokenList](ctx, c, http.MethodGet, "/v1/tokens?limit=1000", nil) // there are no more
	return page.Tokens, err
}

// CreateToken makes a token.
func (c *Client) CreateToken(ctx context.Context, ask NewToken) (IssuedKey, error) {
	return get[IssuedKey](ctx, c, http.MethodPost, "/v1/tokens", ask)
}
