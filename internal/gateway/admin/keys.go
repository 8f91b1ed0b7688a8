package admin

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
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

// KeySettings is what a PATCH can change of a key.
type KeySettings struct {
	Limit  project.Limit `json:"limit,omitzero"`
	Models []string      `json:"models,omitempty"`
	Paused bool          `json:"paused,omitempty"`
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
	theirs := slices.DeleteFunc(a.allKeys(), func(k keys.Key) bool { return !keys.Within(k.Project, callerOf(r).project) })
	list, next, err := pageOf(r, theirs, func(k keys.Key) string { return k.Project + "/" + k.ID })
	used := a.uses.last(r.Context())
	for i := range list {
		list[i].LastUsed = used[list[i].ID]
	}
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
	if err := callerOf(r).check(ask.Project); err != nil {
		return nil, err
	}
	return a.issue(r, change{action: "key.create", subject: ask.Project}, func(ctx context.Context) (string, keys.Key, error) {
		return a.gateway.Keys().CreateKey(ctx, keys.Key{Project: ask.Project, Name: ask.Name, Limit: ask.Limit, Models: ask.Models}, time.Duration(ask.TTL))
	})
}

// changeKey changes some fields of a key.
func (a *Admin) changeKey(r *http.Request) (any, error) {
	patch, err := readPatch[KeySettings](r)
	if err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	if err := keys.CheckID(id); err != nil {
		return nil, err
	}
	if err := a.gateway.Keys().Load(r.Context()); err != nil {
		return nil, err
	}
	if a.keyOf(id) == nil {
		return nil, fmt.Errorf("%w: %s", keys.ErrUnknown, id)
	}
	_, preview, err := perform(a, r, edit[KeySettings]{
		action: "key.change", subject: id,
		now: func() (now KeySettings) {
			if k := a.keyOf(id); k != nil { // it may have been revoked meanwhile, which Change finds
				now = settingsOf(*k)
			}
			return now
		},
		next: func(before KeySettings) (after KeySettings, err error) {
			if after, err = merge(before, patch, "key"); err == nil {
				err = keys.CheckTerms(after.Limit, after.Models)
			}
			return after, err
		},
		apply: func(ctx context.Context, before, after KeySettings) error {
			if before.Paused != after.Paused {
				if err := a.gateway.Controls().SetKey(ctx, id, control.Key{Paused: after.Paused}); err != nil {
					return err
				}
			}
			if after.Paused = before.Paused; reflect.DeepEqual(before, after) {
				return nil
			}
			_, err := a.gateway.Keys().Change(ctx, id, func(k *keys.Key) {
				if merged, err := merge(settingsOf(*k), patch, "key"); err == nil { // another gateway may have changed the key since
					k.Limit, k.Models = merged.Limit, merged.Models
				}
			})
			return err
		},
		kind: control.KeyTerm,
		held: func(before, after KeySettings, t *control.Term) { t.Resume = after.Paused && !before.Paused },
	})
	if err != nil || preview != nil {
		return preview, err
	}
	return a.keyOf(id), nil
}

// settingsOf returns what a PATCH can change of a key.
func settingsOf(k keys.Key) KeySettings { return KeySettings{k.Limit, k.Models, k.Paused} }

func (a *Admin) rotateKey(r *http.Request) (any, error) {
	ask, err := decode[Rotation](r)
	if err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	if err := keys.CheckID(id); err != nil {
		return nil, err
	}
	c := change{action: "key.rotate", subject: id, before: func() any { return a.keyBefore(id) }}
	return a.issue(r, c, func(ctx context.Context) (string, keys.Key, error) {
		secret, k, err := a.gateway.Keys().Rotate(ctx, id, time.Duration(ask.Grace))
		k.Paused = a.gateway.Controls().State().Key(id).Paused // a new secret does not resume the key
		return secret, k, err
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
		before: func() any { return a.keyBefore(id) },
		apply: func() (any, error) {
			ctx := context.WithoutCancel(r.Context())
			if err := a.gateway.Keys().Revoke(ctx, id); err != nil {
				return nil, err
			}
			return nil, a.gateway.Controls().SetKey(ctx, id, control.Key{}) // ids are not used twice: this only tidies up
		},
	})
}

// allKeys returns all keys, and which of them are paused.
func (a *Admin) allKeys() []keys.Key {
	list, switched := a.gateway.Keys().List(), a.gateway.Controls().State()
	for i := range list {
		list[i].Paused = switched.Key(list[i].ID).Paused
	}
	return list
}

// keyOf returns the description of a key, or nil.
func (a *Admin) keyOf(id string) *keys.Key {
	for _, k := range a.allKeys() {
		if k.ID == id {
			return &k
		}
	}
	return nil
}

// keyBefore returns the description of a key for the audit log, or nil.
func (a *Admin) keyBefore(id string) any {
	if k := a.keyOf(id); k != nil {
		return k
	}
	return nil
}
