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
			after.Paused = before.Paused
			if reflect.DeepEqual(before, after) {
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

// allKeys returns all keys, and which of them are paused.
func (a *Admin) allKeys() []keys.Key {
	list, switched := a.gateway.Keys().List(), a.gateway.Controls().State()
	for i := range list {
		list[i].Paused = switched.Key(list[i].ID).Paused
	}
	return list
}

// keyOf returns the description of a key, or nil.
func (a *Admin) keyOf(id string) *keys.Key { return find(a.allKeys(), id) }
