package admin

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
)

// Secret is a kind of secrets that the gateway issues. Both are rotated and revoked in the same way.
type Secret string

const (
	VirtualKey Secret = "key"   // of a project, for calls
	Token      Secret = "token" // of this API
)

// IssuedKey is a new key or token, or one with a new secret.
type IssuedKey struct {
	keys.Key
	Secret string `json:"secret"` // the whole key, which is shown only here
}

// Rotation is a request for a new secret of a key or a token.
type Rotation struct {
	Grace Seconds `json:"grace,omitempty"` // how long the old secret stays valid
}

// ring returns the secrets of a kind.
func (a *Admin) ring(of Secret) *keys.Ring {
	if of == Token {
		return a.gateway.Tokens()
	}
	return a.gateway.Keys()
}

// secretBefore returns the description of a key or a token for the audit log, or nil.
func (a *Admin) secretBefore(of Secret, id string) any {
	list := a.allKeys
	if of == Token {
		list = a.gateway.Tokens().List
	}
	if k := find(list(), id); k != nil {
		return k
	}
	return nil
}

// find returns the key with an id, or nil.
func find(list []keys.Key, id string) *keys.Key {
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// rotate returns the handler that gives a key or a token a new secret.
func (a *Admin) rotate(of Secret) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		ask, err := decode[Rotation](r)
		if err != nil {
			return nil, err
		}
		id := r.PathValue("id")
		if err := keys.CheckID(id); err != nil {
			return nil, err
		}
		c := change{action: string(of) + ".rotate", subject: id, before: func() any { return a.secretBefore(of, id) }}
		return a.issue(r, c, func(ctx context.Context) (string, keys.Key, error) {
			secret, k, err := a.ring(of).Rotate(ctx, id, time.Duration(ask.Grace))
			k.Paused = of == VirtualKey && a.gateway.Controls().State().Key(id).Paused // a new secret does not resume the key
			return secret, k, err
		})
	}
}

// issue makes a change that results in a new secret. Only the answer has it, and no log. A
// change that has begun ends even if the client leaves.
func (a *Admin) issue(r *http.Request, c change, do func(ctx context.Context) (string, keys.Key, error)) (any, error) {
	var issued IssuedKey
	c.apply = func() (after any, err error) {
		issued.Secret, issued.Key, err = do(context.WithoutCancel(r.Context()))
		return issued.Key, err
	}
	if err := a.do(r, c); err != nil {
		return nil, err
	}
	return issued, nil
}

// revoke returns the handler that makes a key or a token not valid any more.
func (a *Admin) revoke(of Secret) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		id := r.PathValue("id")
		if err := keys.CheckID(id); err != nil {
			return nil, err
		}
		return nil, a.do(r, change{
			action: string(of) + ".revoke", subject: id,
			before: func() any { return a.secretBefore(of, id) },
			apply: func() (any, error) {
				ctx := context.WithoutCancel(r.Context())
				if err := a.ring(of).Revoke(ctx, id); err != nil || of == Token {
					return nil, err
				}
				return nil, a.gateway.Controls().SetKey(ctx, id, control.Key{}) // ids are not used twice: this only tidies up
			},
		})
	}
}

// Rotate gives a key or a token a new secret. The old secret stays valid for the grace period.
func (c *Client) Rotate(ctx context.Context, of Secret, id string, grace time.Duration) (IssuedKey, error) {
	return get[IssuedKey](ctx, c, http.MethodPost, of.path(id)+"/rotate", Rotation{Seconds(grace)})
}

// Revoke makes a key or a token not valid any more.
func (c *Client) Revoke(ctx context.Context, of Secret, id string) error {
	_, err := get[struct{}](ctx, c, http.MethodDelete, of.path(id), nil)
	return err
}

func (s Secret) path(id string) string { return "/v1/" + string(s) + "s/" + url.PathEscape(id) }
