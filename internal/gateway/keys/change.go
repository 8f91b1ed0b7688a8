package keys

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/settings"
)

// Create makes a key of a project, and returns the whole key and its description. The key
// expires after ttl; 0 is never.
func (r *Ring) Create(ctx context.Context, project, name string, ttl time.Duration) (key string, k Key, err error) {
	return r.CreateKey(ctx, Key{Project: project, Name: name}, ttl)
}

// CreateKey is Create of a key with the project, the role, the name, the limit and the models of k.
func (r *Ring) CreateKey(ctx context.Context, k Key, ttl time.Duration) (key string, made Key, err error) {
	now := time.Now()
	k = Key{
		Project: k.Project, Role: k.Role, Name: k.Name, Limit: k.Limit, Models: slices.Clone(k.Models),
		Created: now.UTC().Truncate(time.Second), Expires: expiry(now, ttl),
	}
	if err := cmp.Or(r.checkKind(&k), k.validate()); err != nil {
		return "", Key{}, err
	}
	if ttl < 0 {
		return "", Key{}, fmt.Errorf("%w: it is to expire after %v: that must not be negative; 0 is never", ErrInvalid, ttl)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.records) >= r.maxKeys {
		return "", Key{}, fmt.Errorf("%w: it would be one too many: there may be %d; revoke keys that are not needed", ErrInvalid, r.maxKeys)
	}
	for {
		k.ID = random(idSize)
		key, added, err := r.add(ctx, record{Key: k})
		if err != nil {
			return "", Key{}, notDone(err, "made")
		}
		if added {
			return key, k, nil
		}
	}
}

// Rotate gives a key a new secret, and returns the whole key and its description. The replaced
// secret stays valid for the grace period, and secrets that were replaced earlier for theirs.
// With a grace period of 0, only the new secret is valid. The key expires when it would have
// without Rotate.
func (r *Ring) Rotate(ctx context.Context, id string, grace time.Duration) (key string, k Key, err error) {
	if grace < 0 {
		return "", Key{}, fmt.Errorf("%w: the grace is %v: it must not be negative", ErrInvalid, grace)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		secrets, err := r.current(ctx, id)
		if err != nil {
			return "", Key{}, notDone(err, "rotated")
		}
		k, now := newest(secrets), time.Now()
		if !k.Expires.IsZero() && !now.Before(k.Expires) {
			return "", Key{}, fmt.Errorf("%w: it has expired on %s: make another", ErrInvalid, k.Expires.Format(time.RFC3339))
		}
		key, added, err := r.add(ctx, record{Key: k, Number: len(secrets), Grace: expiry(now, grace)})
		if err != nil {
			return "", Key{}, notDone(err, "rotated")
		}
		if added {
			k.PreviousUntil = (*r.entries.Load())[id].previousUntil(now)
			return key, k, nil
		}
	}
}

// Change lets change the limit and the models of a key, and returns its description. It cannot
// change anything else. All secrets of the key stay valid.
func (r *Ring) Change(ctx context.Context, id string, change func(*Key)) (Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		secrets, err := r.current(ctx, id)
		if err != nil {
			return Key{}, notDone(err, "changed")
		}
		k, asked := newest(secrets), newest(secrets)
		change(&asked)
		k.Limit, k.Models = asked.Limit, slices.Clone(asked.Models)
		if err := k.validate(); err != nil {
			return Key{}, err
		}
		added, err := r.put(ctx, record{Key: k, Number: len(secrets), Hash: secrets[len(secrets)-1].Hash})
		if err != nil {
			return Key{}, notDone(err, "changed")
		}
		if added {
			k.PreviousUntil = (*r.entries.Load())[id].previousUntil(time.Now())
			return k, nil
		}
	}
}

// Revoke removes a key with all of its secrets.
func (r *Ring) Revoke(ctx context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	secrets, err := r.current(ctx, id)
	if err == nil {
		err = r.erase(ctx, secrets)
	}
	return notDone(err, "revoked")
}

// notDone adds to an error of the store that the key was not made, rotated or revoked. If only
// the store's answer was lost, the change may have been made, but nobody has got the new secret.
func notDone(err error, done string) error {
	if err == nil || errors.Is(err, ErrUnknown) {
		return err
	}
	return fmt.Errorf("%w (as far as is known, the key was not %s)", err, done)
}

// CheckID returns an error if a text does not have the form of an id. The error does not
// show the text, which may be a whole key.
func CheckID(id string) error {
	if !isID(id) {
		return fmt.Errorf("%w: an id has %d characters of a-z and 2-7, and stands between the dashes of a key", ErrUnknown, idSize)
	}
	return nil
}

// current reads the store again, and returns the records of a key.
func (r *Ring) current(ctx context.Context, id string) ([]*record, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	if err := r.reload(ctx); err != nil {
		return nil, err
	}
	if r.records[id] == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	return r.records[id], nil
}

// add makes a secret and stores its record. added is false if another gateway was first to
// store a record with this name.
func (r *Ring) add(ctx context.Context, rec record) (key string, added bool, err error) {
	secret := random(secretSize)
	hash := sha256.Sum256([]byte(secret))
	rec.Hash = hash[:]
	added, err = r.put(ctx, rec)
	return join(rec.ID, secret), added, err
}

// put stores a record. added is false if another gateway was first to store one with this name.
func (r *Ring) put(ctx context.Context, rec record) (added bool, err error) {
	if first, err := r.write(ctx, &rec); err != nil || !first {
		return false, err
	}
	records := maps.Clone(r.records)
	records[rec.ID] = append(slices.Clip(records[rec.ID]), &rec)
	r.set(records, nil)
	return true, nil
}

// write stores a record, and reports whether it is the first with its name.
func (r *Ring) write(ctx context.Context, rec *record) (bool, error) {
	if r.keeper == nil {
		return len(r.records[rec.ID]) == rec.Number, nil
	}
	name := rec.setting()
	now, err := settings.Put(ctx, r.keeper, r.prefix, map[string]*record{name: rec}, true)
	if err != nil {
		return false, err
	}
	stored, err := r.parseRecord(name, now[r.prefix+name])
	return err == nil && stored.equal(rec), nil
}

// erase empties all records of a key.
func (r *Ring) erase(ctx context.Context, secrets []*record) error {
	if r.keeper != nil {
		empty := map[string]*record{}
		for _, secret := range secrets {
			empty[secret.setting()] = nil
		}
		if _, err := settings.Put(ctx, r.keeper, r.prefix, empty, false); err != nil {
			return err
		}
	}
	records := maps.Clone(r.records)
	delete(records, secrets[0].ID)
	r.set(records, nil)
	return nil
}
