package redisstore

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// Reset implements [store.Store].
func (r *remote) Reset(ctx context.Context, prefix string) error {
	if err := r.check(ctx, nil); err != nil {
		return err
	}
	return r.scan(ctx, prefix, func(names []string) error {
		unlinks := make(rueidis.Commands, len(names))
		for i, name := range names {
			unlinks[i] = r.client.B().Unlink().Key(name).Build()
		}
		within, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		for _, answer := range r.client.DoMulti(within, unlinks...) {
			if err := answer.Error(); err != nil {
				return commandError(ctx, err)
			}
		}
		return nil
	})
}

// Keys implements [store.Store].
func (r *remote) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	err = r.scan(ctx, prefix, func(names []string) error {
		for _, name := range names {
			key, _ := r.keyOf(name)
			keys = append(keys, key)
		}
		return nil
	})
	slices.Sort(keys)
	return slices.Compact(keys), err
}

// scan calls fn with the names in Redis of keys that begin with prefix, some at a time. It finds every earlier settlement
// made, although it does not go through the queue that has them.
func (r *remote) scan(ctx context.Context, prefix string, fn func(names []string) error) error {
	r.link.awaitSettled()
	if err := r.link.alive(); err != nil {
		return err
	}
	for _, node := range r.client.Nodes() {
		for cursor := uint64(0); ; {
			scan := node.B().Scan().Cursor(cursor).Match(r.pattern(prefix)).Count(1000).Build()
			within, cancel := context.WithTimeout(ctx, r.timeout)
			found, err := node.Do(within, scan).AsScanEntry()
			cancel()
			if err != nil {
				return commandError(ctx, err)
			}
			names := slices.DeleteFunc(found.Elements, func(name string) bool {
				key, ok := r.keyOf(name)
				return !ok || !strings.HasPrefix(key, prefix)
			})
			if len(names) > 0 {
				if err := fn(names); err != nil {
					return err
				}
			}
			if cursor = found.Cursor; cursor == 0 {
				break
			}
		}
	}
	return nil
}
