package settings

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type size struct {
	Width  int `json:"width"`
	Height int `json:"height,omitempty"`
}

// board is a keeper in memory.
type board struct {
	values  map[string]string
	changed func()
	fails   int // how many more times Settings fails
}

func (b *board) Settings(context.Context) (map[string]string, error) {
	if b.fails > 0 {
		b.fails--
		return nil, errors.New("lost")
	}
	return b.values, nil
}

func (b *board) PutSettings(_ context.Context, values map[string]string, onlyNew bool) (map[string]string, error) {
	now := map[string]string{}
	for name, value := range values {
		if _, there := b.values[name]; !there || !onlyNew {
			b.values[name] = value
		}
		now[name] = b.values[name]
	}
	return now, nil
}

func (b *board) SwapSetting(_ context.Context, name, old, new string) (bool, error) {
	if b.values[name] != old {
		return false, nil
	}
	b.values[name] = new
	return true, nil
}

func (b *board) WatchSettings(changed func()) (stop func()) {
	b.changed = changed
	return func() { b.changed = nil }
}

func positive(name string, s size) error {
	if s.Width < 1 {
		return errors.New("ratelimit: a width must be at least 1")
	}
	return nil
}

func TestPutAndParse(t *testing.T) {
	b := &board{values: map[string]string{"colour/a": "red"}}
	now, err := Put(t.Context(), b, "size/", map[string]size{"a": {1, 2}, "b": {Width: 3}}, false)
	if err != nil || now["size/b"] != `{"width":3}` {
		t.Fatalf("%v, %v", now, err)
	}
	if now, err = Put(t.Context(), b, "size/", map[string]size{"b": {Width: 4}, "c": {Width: 5}}, true); err != nil || now["size/b"] != `{"width":3}` {
		t.Errorf("only those that are new: %v, %v", now, err)
	}
	if err := Unset(t.Context(), b, "size/", "a"); err != nil {
		t.Fatal(err)
	}
	values, unset := Parse(b.values, "size/", positive, func(err error) { t.Error(err) })
	if !maps.Equal(values, map[string]size{"b": {Width: 3}, "c": {Width: 5}}) || !slices.Equal(unset, []string{"a"}) {
		t.Errorf("%v, %v", values, unset)
	}
}

// A value with unknown parts is left out, and reported.
func TestParseNonsense(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"width":1}{}`, `{"width":1,"depth":2}`, `{"width":0}`, `{"width":"1"}`} {
		var missed error
		values, unset := Parse(map[string]string{"size/x": text, "size/y": `{"width":1}`}, "size/", positive, func(err error) { missed = err })
		if len(values) != 1 || len(unset) != 0 {
			t.Errorf("%q: %v, %v", text, values, unset)
		}
		if missed == nil || !strings.HasPrefix(missed.Error(), `ratelimit: the store's setting "size/x" is not used: `) || strings.Count(missed.Error(), "ratelimit:") != 1 {
			t.Errorf("%q: %v", text, missed)
		}
	}
}

// A load that fails is repeated until it succeeds, or until stop.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{fails: 2}
		var missed []error
		loaded := 0
		stop := Follow(b, func(ctx context.Context) error {
			_, err := b.Settings(ctx)
			if err == nil {
				loaded++
			}
			return err
		}, func(err error) { missed = append(missed, err) })
		start := time.Now()
		b.changed()
		if loaded != 1 || len(missed) != 2 || time.Since(start) != 2*retryAfter {
			t.Errorf("loaded %d times, missed %v, after %v", loaded, missed, time.Since(start))
		}
		b.fails = 1 << 30
		go b.changed()
		synctest.Wait()
		stop() // or the bubble would not end
		if b.changed != nil {
			t.Error("it is still watched")
		}
	})
}

// TestFollowRests sets values one after another, as a program does that sets ten thousand quotas. Each load reads all of
// them, so a load for each would cost the square of their number.
func TestFollowRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		var loading time.Duration
		stop := Follow(b, func(context.Context) error {
			const each = 20 * time.Millisecond
			time.Sleep(each)
			loading += each
			return nil
		}, func(err error) { t.Error(err) })
		start := time.Now()
		for range 1000 {
			b.changed()
		}
		if all := time.Since(start); loading > all/5 {
			t.Errorf("it loads for %v of %v: a fifth is allowed", loading, all)
		}
		stop()
	})
}
