package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/store"
)

// Settings are values beside the accounts, such as limits that were set at run time, which all
// processes that share the file see. A value that changes gets a new row with a higher number than
// all before, so the highest number shows whether anything has changed.
const settingsSchema = `
CREATE TABLE IF NOT EXISTS settings (
	change INTEGER PRIMARY KEY,
	name   BLOB NOT NULL UNIQUE,
	value  BLOB NOT NULL
) STRICT`

// Settings returns all settings by their names.
func (s internals) Settings(ctx context.Context) (values map[string]string, err error) {
	err = s.submit(&operation{ctx: ctx, step: func(*batch) error {
		values = map[string]string{}
		var name, value []byte
		return (&tx{s: s.Store}).scan("SELECT name, value FROM settings", nil, func() {
			values[string(name)] = string(value)
		}, &name, &value)
	}})
	return values, err
}

// setting returns the value of one setting, if it exists.
func (s *Store) setting(name string) (value string, exists bool, err error) {
	var bytes []byte
	err = s.conn.QueryRowContext(context.Background(), "SELECT value FROM settings WHERE name = ?", []byte(name)).Scan(&bytes)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return string(bytes), err == nil, s.describe(err)
}

// PutSettings sets values by their names, or with onlyNew only those of names without a value, in
// one step. It returns the values that the names have now.
func (s internals) PutSettings(ctx context.Context, values map[string]string, onlyNew bool) (map[string]string, error) {
	if len(values) == 0 {
		return nil, nil
	}
	now, changed := map[string]string{}, false
	err := s.Update(ctx, func(tx transaction.Tx) error {
		for name, value := range values {
			current, exists, err := s.setting(name)
			if err != nil {
				return err
			}
			if exists && (onlyNew || current == value) {
				now[name] = current
				continue
			}
			if _, err := tx.Exec(putSetting, []byte(name), []byte(value)); err != nil {
				return err
			}
			now[name], changed = value, true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if changed {
		s.watchers.notify()
	}
	return now, nil
}

// SwapSetting sets the value of a name if the value is still old; an empty old is none. It reports whether
// it did.
func (s internals) SwapSetting(ctx context.Context, name, old, new string) (swapped bool, err error) {
	err = s.Update(ctx, func(tx transaction.Tx) error {
		current, _, err := s.setting(name)
		if swapped = err == nil && current == old; !swapped || old == new {
			return err
		}
		_, err = tx.Exec(putSetting, []byte(name), []byte(new))
		return err
	})
	if err != nil {
		return false, err
	}
	if swapped {
		s.watchers.notify()
	}
	return swapped, nil
}

// putSetting sets a setting. Its row gets a new number, by which watchers see that something has changed.
const putSetting = "INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)"

// WatchSettings calls changed when settings have changed, one call at a time, until stop returns:
// at once if they were set through this Store, and within about a second otherwise. It also calls
// it when it begins to watch.
func (s internals) WatchSettings(changed func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx, changed) })
	return func() {
		cancel()
		watching.Wait()
	}
}

func (s *Store) watch(ctx context.Context, changed func()) {
	again := time.NewTicker(settings.PollInterval)
	defer again.Stop()
	for seen := int64(-1); ; {
		news := s.watchers.news() // before the query, so that no change is missed
		last, err := s.lastChange(ctx)
		if err == nil && last != seen {
			seen = last
			changed()
		}
		if errors.Is(err, store.ErrClosed) {
			return
		}
		select {
		case <-news:
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// lastChange returns the number of the last change of settings.
func (s *Store) lastChange(ctx context.Context) (n int64, err error) {
	err = s.submit(&operation{ctx: ctx, step: func(*batch) error {
		return s.describe(s.do.lastChange.QueryRow().Scan(&n))
	}})
	return n, err
}

// watchers are notified of changes that are made through a store.
type watchers struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next change; nil if nobody waits for it
}

// news returns a channel that is closed at the next change.
func (w *watchers) news() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil {
		w.next = make(chan struct{})
	}
	return w.next
}

func (w *watchers) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next != nil {
		close(w.next)
		w.next = nil
	}
}
