package keys

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/settings"
)

// Create makes a key of a project, and returns it with what is known of it. It
// expires after ttl, unless that is 0.
func (r *Ring) Create(ctx context.Context, project, name string, ttl time.Duration) (secret string, k Key, err error) {
	now := time.Now()
	k = Key{Project: project, Name: name, Created: now.UTC().Truncate(time.Second), Expires: end(now, ttl)}
	if err := k.validate(); err != nil {
		return "", Key{}, err
	}
	if ttl < 0 {
		return "", Key{}, fmt.Errorf("%w: it is to expire after %v: that must not be negative; 0 is never", ErrInvalid, ttl)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.records) >= r.most {
		return "", Key{}, fmt.Errorf("%w: it would be one too many: there may be %d; revoke those that are not needed", ErrInvalid, r.most)
	}
	for {
		k.ID = random(idSize)
		secret, added, err := r.add(ctx, record{Key: k})
		if err != nil {
			return "", Key{}, unchanged(err, "made")
		}
		if added {
			return secret, k, nil
		}
	}
}

// Rotate makes a new secret of a key, in place of one that goes on to be valid for the
// grace. What that has replaced before stays valid as long as was said then. With a grace
// of 0, none but the new one is valid. The key expires when it would have.
func (r *Ring) Rotate(ctx context.Context, id string, grace time.Duration) (secret string, k Key, err error) {
	if grace < 0 {
		return "", Key{}, fmt.Errorf("%w: the grace is %v: it must not be negative", ErrInvalid, grace)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		known, err := r.known(ctx, id)
		if err != nil {
			return "", Key{}, unchanged(err, "rotated")
		}
		k, now := known[0].Key, time.Now()
		if !k.Expires.IsZero() && !now.Before(k.Expires) {
			return "", Key{}, fmt.Errorf("%w: it has expired on %s: make another", ErrInvalid, k.Expires.Format(time.RFC3339))
		}
		secret, added, err := r.add(ctx, record{Key: k, Turn: len(known), Grace: end(now, grace)})
		if err != nil {
			return "", Key{}, unchanged(err, "rotated")
		}
		if added {
			k.PreviousUntil = (*r.entries.Load())[id].previousUntil(now)
			return secret, k, nil
		}
	}
}

// Revoke makes a key, and those that it has replaced, not valid any more.
func (r *Ring) Revoke(ctx context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, err := r.known(ctx, id)
	if err == nil {
		err = r.drop(ctx, known)
	}
	return unchanged(err, "revoked")
}

// unchanged says what has not been done to a key, for an error of the keeper. A store
// whose answer is lost may have done it, but nobody has been given a new secret then.
func unchanged(err error, done string) error {
	if err == nil || errors.Is(err, ErrUnknown) {
		return err
	}
	return fmt.Errorf("%w (as far as is known, the key was not %s)", err, done)
}

// CheckID returns an error if no key has such an id. It may be a whole key, so it is not
// shown.
func CheckID(id string) error {
	if !isID(id) {
		return fmt.Errorf("%w: an id has %d characters of a-z and 2-7, and stands between the dashes of a key", ErrUnknown, idSize)
	}
	return nil
}

// known returns what is kept of a key by now.
func (r *Ring) known(ctx context.Context, id string) ([]*record, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	if err := r.reload(ctx); err != nil {
		return nil, err
	}
	known := r.records[id]
	if known == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	return known, nil
}

// add makes a secret and keeps the record of it, unless there is one of the same name.
func (r *Ring) add(ctx context.Context, made record) (key string, added bool, err error) {
	secret := random(secretSize)
	hash := sha256.Sum256([]byte(secret))
	made.Hash = hash[:]
	if first, err := r.keep(ctx, &made); err != nil || !first {
		return "", false, err
	}
	records := maps.Clone(r.records)
	records[made.ID] = append(slices.Clip(records[made.ID]), &made)
	r.set(records, nil)
	return join(made.ID, secret), true, nil
}

// keep writes a record, and reports whether it is the first of its name.
func (r *Ring) keep(ctx context.Context, made *record) (bool, error) {
	if r.keeper == nil {
		return len(r.records[made.ID]) == made.Turn, nil
	}
	name := made.setting()
	now, err := settings.Put(ctx, r.keeper, kind, map[string]*record{name: made}, true)
	if err != nil {
		return false, err
	}
	stands, err := parseRecord(name, now[kind+name])
	return err == nil && stands != nil && bytes.Equal(stands.Hash, made.Hash), nil
}

// drop takes back all records of a key.
func (r *Ring) drop(ctx context.Context, known []*record) error {
	if r.keeper != nil {
		gone := map[string]*record{}
		for _, secret := range known {
			gone[secret.setting()] = nil
		}
		if _, err := settings.Put(ctx, r.keeper, kind, gone, false); err != nil {
			return err
		}
	}
	records := maps.Clone(r.records)
	delete(records, known[0].ID)
	r.set(records, nil)
	return nil
}
