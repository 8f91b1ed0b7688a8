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
	Next string     `json:"next,omitempty"` // the parameter after of the next page; empty: this is the last
}

// NewKey is a request for a key.
type NewKey struct {
	Project string  `json:"project"`
	Name    string  `json:"name,omitempty"` // what it is for
	TTL     Seconds `json:"ttl,omitempty"`  // how long the key is valid; 0: forever

	Limit  project.Limit `json:"limit,omitzero"`   // what calls with the key may use, beside the limits of the project
	Models []string      `json:"models,omitempty"` // names or patterns of the models that the key may call; empty: all
}

// KeyChange changes a key. What is nil stays.
type KeyChange struct {
	Limit  *project.Limit `json:"limit,omitempty"`
	Models *[]string      `json:"models,omitempty"`
}

// IssuedKey is a new key, or one with a new secret.
type IssuedKey struct {
	keys.Key
	Secret string `json:"secret"` // the whole key, which is shown only here
}

// Rotation is a request for a new secret of a key.
type Rotation struct {
	Grace Seconds `json:"grace,omitempty"` // how long the old secret stays valid
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
		return a.gateway.Keys().CreateKey(ctx, keys.Key{Project: ask.Project, Name: ask.Name, Limit: ask.Limit, Models: ask.Models}, time.Duration(ask.TTL))
	})
}

func (a *Admin) changeKey(r *http.Request) (any, error) {
	ask, err := decode[KeyChange](r)
	if err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	if err := keys.CheckID(id); err != nil {
		return nil, err
	}
	var changed keys.Key
	err = a.do(r, change{
		action: "key.change", subject: id,
		before: func() any { return a.keyOf(id) },
		apply: func() (after any, err error) {
			changed, err = a.gateway.Keys().Change(context.WithoutCancel(r.Context()), id, ask.apply)
			return changed, err
		},
	})
	return changed, err
}

// apply makes the change of a key.
func (c *KeyChange) apply(k *keys.Key) {
	if c.Limit != nil {
		k.Limit = *c.Limit
	}
	if c.Models != nil {
		k.Models = *c.Models
	}
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

func (a *Admin) revokeKey(r *http.Request) (any, error) {
	id := r.PathValue("id")
	if err := keys.CheckID(id); err != nil {
		return nil, err
	}
	return nil, a.do(r, change{
		action: "key.revoke", subject: id,
		before: func() any { return a.keyOf(id) },
		apply:  func() (any, error) { return nil, a.gateway.Keys().Revoke(context.WithoutCancel(r.Context()), id) },
	})
}

// keyOf returns the description of a key, or nil.
func (a *Admin) keyOf(id string) any {
	for _, k := range a.gateway.Keys().List() {
		if k.ID == id {
			return k
		}
	}
	return nil
}
