package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/settings/settingstest"
	"dappco.re/go/core/go-ratelimit/store"
)

func TestKeeper(t *testing.T) {
	settingstest.Run(t, func(t *testing.T) settingstest.Connect {
		path := filepath.Join(t.TempDir(), "limits.db")
		return func() settings.Keeper { return inside(openAt(t, path)) }
	})
}

type values = map[string]string

func wantSettings(t *testing.T, s *Store, want values) {
	t.Helper()
	if got, err := inside(s).Settings(t.Context()); err != nil || !maps.Equal(got, want) {
		t.Errorf("settings %q, %v; want %q", got, err, want)
	}
}

// Settings stay in the file, and operations on accounts leave them alone.
func TestSettingsStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	s := openAt(t, path)
	settingstest.Put(t, inside(s), "x", "1")
	take(t, s, charge("x", 1, perDay(10)))
	if err := s.Reset(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	s.Close()
	wantSettings(t, openAt(t, path), values{"x": "1"})
}

// A file of a program that knew no settings gets their table, and keeps its content.
func TestFileWithoutSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	s := openAt(t, path)
	take(t, s, charge("key", 3, perDay(10)))
	update(t, s, "DROP TABLE settings")
	s.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	wg.Wait()
	s = openAt(t, path)
	wantUsed(t, s, "key", perDay(10), 3)
	wantSettings(t, s, values{})
	settingstest.Put(t, inside(s), "x", "1")
	wantSettings(t, s, values{"x": "1"})
}

// Setting the same value is no change for watchers, and neither are decisions.
func TestLastChange(t *testing.T) {
	s := open(t)
	last, err := s.lastChange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		values  values
		onlyNew bool
		changes bool
	}{
		{values{"x": "1", "y": "2"}, false, true},
		{values{"x": "1", "y": "2"}, false, false},
		{values{"x": "3", "y": "4"}, true, false},
		{values{"x": "3", "z": "4"}, true, true},
		{values{"x": "3"}, false, true},
		{values{"z": ""}, false, true},
		{values{"x": "1"}, false, true},
		{values{"x": "2"}, false, true},
		{values{"x": "1"}, false, true},
	} {
		if _, err := inside(s).PutSettings(t.Context(), step.values, step.onlyNew); err != nil {
			t.Fatal(err)
		}
		take(t, s, charge("key", 1, perDay(10)))
		now, err := s.lastChange(t.Context())
		if err != nil || now < last || now != last != step.changes {
			t.Errorf("step %d: from %d to %d, %v; changes: %t", i, last, now, err, step.changes)
		}
		last = now
	}
}

// A change through the same store is reported at once, without waiting for the next poll.
func TestWatchAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		news := settingstest.Watched(t, inside(s))
		<-news
		began := time.Now()
		settingstest.Put(t, inside(s), "x", "1")
		<-news
		if took := time.Since(began); took != 0 {
			t.Errorf("reported after %v", took)
		}
	})
}

// If one of several values cannot be written, none is.
func TestPutSettingsFails(t *testing.T) {
	s := open(t)
	settingstest.Put(t, inside(s), "x", "1")
	news := settingstest.Watched(t, inside(s))
	settingstest.Await(t, inside(s), news, "x", "1")
	wantFault := func(what, want string) {
		t.Helper()
		now, err := inside(s).PutSettings(t.Context(), values{"x": "2", "long": strings.Repeat("x", 50_000)}, false)
		if now != nil || err == nil || !strings.HasPrefix(err.Error(), "ratelimit: "+s.path+": "+want) {
			t.Errorf("%s: %v, %v", what, now, err)
		}
		wantSettings(t, s, values{"x": "1"})
	}
	update(t, s, "PRAGMA max_page_count = "+query(t, s, "PRAGMA page_count"))
	wantFault("full", "the disk is full")
	update(t, s, "PRAGMA max_page_count = 1000000")
	s.busyTimeout = 20 * time.Millisecond
	unlock := lock(t, s)
	wantFault("locked", "others have had it locked for more than 20ms")
	unlock()
	select {
	case <-news:
		t.Error("a change that has failed is reported")
	default:
	}
	settingstest.Put(t, inside(s), "x", "2")
	settingstest.Await(t, inside(s), news, "x", "2")
}

// A watcher of a closed store is not called, and can still be stopped.
func TestSettingsOfAClosedStore(t *testing.T) {
	s := open(t)
	news := make(chan struct{}, 100)
	stop := inside(s).WatchSettings(func() { news <- struct{}{} })
	<-news
	s.Close()
	if _, err := inside(s).Settings(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := inside(s).PutSettings(t.Context(), values{"x": "1"}, true); !errors.Is(err, store.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	stop()
	late := inside(s).WatchSettings(func() { t.Error("called for a store that is closed") })
	late()
}

func init() {
	children["put"] = func(s *Store, input string) error {
		_, err := inside(s).PutSettings(context.Background(), values{"x": strings.TrimSpace(input)}, false)
		return err
	}
}

// Changes of settings by another process are noticed.
func TestSettingsOfAnotherProcess(t *testing.T) {
	s := open(t)
	news := settingstest.Watched(t, inside(s))
	for i := range 2 {
		start(t, "put", s.path).begin(fmt.Sprint(i))
		settingstest.Await(t, inside(s), news, "x", fmt.Sprint(i))
	}
}
