package admin

import (
	"context"
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway/keys"
	"dappco.re/go/core/go-ratelimit/project"
)

// KeyList is a page of keys.
type KeyList struct {
	Keys []keys.Key `json:"keys"`
	Next string     `json:"next,omitempty"` // the after of the next page, if there is one
}

// NewKey is a key to be made.
type NewKey struct {
	Project string  `json:"project"`
	Name    string  `json:"name,omitempty"` // what it is for
	TTL     Seconds `json:"ttl,omitempty"`  // after which it expires; 0: never
}

// IssuedKey is a key that was made, with the key itself: nobody is told it again.
type IssuedKey struct {
	keys.Key
	Secret string `json:"secret"`
}

// Rotation is how a key is to be rotated.
type Rotation struct {
	Grace Seconds `json:"grace,omitempty"` // for which the old one goes on to be valid
}

func (a *Admin) keys(r *http.Request) (any, error) {
	list, next, err := pageOf(r, a.gateway.Keys().List(), func(k keys.Key) string { return k.Project + "/" + k.ID })
	return KeyList{append([]keys.Key{}, list...), next}, err
}

func (a *Admin) createKey(r *http.Request) (any, error) {
	ask, err := decode[NewKey](r)
	if err != nil {
		return nil, err
	}
	if err := invalid(project.CheckID(ask.Project)); err != nil {
		return nil, err
	}
	return a.issue(r, change{action: "key.create", subject: ask.Project}, func(ctx context.Context) (string, keys.Key, error) {
		return a.gateway.Keys().Create(ctx, ask.Project, ask.Name, time.Duration(ask.TTL))
	})
}

func (a *Admin) rotateKey(r *http.Request) (any, error) {
	ask, err := decode[Rotation](r)
	if err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	if err := keys.CheckID(id); err != nil {
		return nil, err
	}
	c := change{action: "key.rotate", subject: id, before: func() any { return a.keyOf(id) }}
	return a.issue(r, c, func(ctx context.Context) (string, keys.Key, error) {
		return a.gateway.Keys().Rotate(ctx, id, time.Duration(ask.Grace))
	})
}

// issue makes a change that ends in a key. Only the answer has the key itself: it is
// in no log. Once begun, it ends whether or not the client waits for it.
func (a *Admin) issue(r *http.Request, c change, do func(ctx context.Context) (string, keys.Key, error)) (any, error) {
	var issued IssuedKey
	c.make = func() (after any, err error) {
		issued.Secret, issued.Key, err = do(context.WithoutCancel(r.Context()))
		return issued.Key, err
	}
	if err := a.do(r, c); err != nil {
		return nil, err
	}
	return issued, nil
}

func (a *Admin) revokeKey(r *http.Request) (any, error) {
	id := r.PathValue("id")
	if err := keys.CheckID(id); err != nil {
		return nil, err
	}
	return nil, a.do(r, change{
		action: "key.revoke", subject: id,
		before: func() any { return a.keyOf(id) },
		make:   func() (any, error) { return nil, a.gateway.Keys().Revoke(context.WithoutCancel(r.Context()), id) },
	})
}

// keyOf returns what is known of a key, or nil.
func (a *Admin) keyOf(id string) any {
	for _, k := range a.gateway.Keys().List() {
		if k.ID == id {
			return k
		}
	}
	return nil
}
