// Package settingstest is the test that every [settings.Keeper] passes.
package settingstest

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/settings"
)

// Connect returns one more keeper of the same settings, until the test ends.
type Connect func() settings.Keeper

// Run tests keepers. create creates an empty store, and returns how to connect to it.
func Run(t *testing.T, create func(t *testing.T) Connect) {
	for name, test := range map[string]func(*testing.T, Connect){
		"steps":       steps,
		"one of many": oneOfMany,
		"none lost":   noneLost,
		"swap":        swap,
		"swap adds":   swapAdds,
		"watch":       watch,
		"stop":        stop,
		"cancelled":   cancelled,
	} {
		t.Run(name, func(t *testing.T) { test(t, create(t)) })
	}
}

type values = map[string]string

func steps(t *testing.T, connect Connect) {
	a, b := connect(), connect()
	want(t, a, values{})
	long := strings.Repeat("long", 1<<16)
	for i, step := range []struct {
		by      settings.Keeper
		values  values
		onlyNew bool
		now     values // of the same names
		all     values
	}{
		{a, nil, false, nil, values{}},
		{a, values{"x": "1", "y": ""}, false, values{"x": "1", "y": ""}, values{"x": "1", "y": ""}},
		{b, values{"x": "2", "z": "3"}, true, values{"x": "1", "z": "3"}, values{"x": "1", "y": "", "z": "3"}},
		{b, values{"y": "new"}, true, values{"y": ""}, values{"x": "1", "y": "", "z": "3"}},
		{b, values{"x": "2"}, false, values{"x": "2"}, values{"x": "2", "y": "", "z": "3"}},
		{a, values{"\x00\xff": "\r\n\x00", "": long}, true, values{"\x00\xff": "\r\n\x00", "": long}, values{"x": "2", "y": "", "z": "3", "\x00\xff": "\r\n\x00", "": long}},
	} {
		now, err := step.by.PutSettings(t.Context(), step.values, step.onlyNew)
		if err != nil || !maps.Equal(now, step.now) {
			t.Errorf("step %d: %q, %v; want %q", i, now, err, step.now)
		}
		want(t, a, step.all)
		want(t, b, step.all)
	}
	want(t, connect(), values{"x": "2", "y": "", "z": "3", "\x00\xff": "\r\n\x00", "": long})
}

func want(t *testing.T, k settings.Keeper, want values) {
	t.Helper()
	got, err := k.Settings(t.Context())
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("settings %q, %v; want %q", got, err, want)
	}
}

// Of several keepers that set the same new name at the same time, one succeeds, and all get its value.
func oneOfMany(t *testing.T, connect Connect) {
	const writers = 8
	results := make(chan string, writers)
	for i := range writers {
		k := connect()
		go func() {
			now, err := k.PutSettings(context.Background(), values{"x": fmt.Sprint(i)}, true)
			results <- fmt.Sprint(now["x"], err)
		}()
	}
	first := <-results
	for range writers - 1 {
		if next := <-results; next != first {
			t.Errorf("one keeper gets %s, and another %s", first, next)
		}
	}
}

// Keepers that set different names at the same time do not undo each other's values.
func noneLost(t *testing.T, connect Connect) {
	const writers, each = 4, 10
	done := make(chan error, writers)
	all := values{}
	for i := range writers {
		k := connect()
		for n := range each {
			all[fmt.Sprint(i, "/", n)] = "there"
		}
		go func() {
			var err error
			for n := 0; n < each && err == nil; n++ {
				_, err = k.PutSettings(context.Background(), values{fmt.Sprint(i, "/", n): "there"}, n%2 == 0)
			}
			done <- err
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	want(t, connect(), all)
}

func swap(t *testing.T, connect Connect) {
	a, b := connect(), connect()
	news := Watched(t, b)
	for i, step := range []struct {
		by             settings.Keeper
		name, old, new string
		swapped        bool
		value          string
	}{
		{a, "x", "", "1", true, "1"},
		{b, "x", "", "2", false, "1"},
		{b, "x", "1", "2", true, "2"},
		{a, "x", "1", "3", false, "2"},
		{a, "x", "2", "2", true, "2"},
		{a, "y", "old", "1", false, ""},
		{a, "\x00\xff", "", "\r\n\x00", true, "\r\n\x00"},
		{b, "\x00\xff", "\r\n\x00", "", true, ""},
	} {
		swapped, err := step.by.SwapSetting(t.Context(), step.name, step.old, step.new)
		if swapped != step.swapped || err != nil {
			t.Errorf("step %d: %v, %v", i, swapped, err)
		}
		if all, err := b.Settings(t.Context()); all[step.name] != step.value || err != nil {
			t.Errorf("step %d: %q is %q, %v; want %q", i, step.name, all[step.name], err, step.value)
		}
	}
	if _, err := a.SwapSetting(t.Context(), "x", "2", "told"); err != nil {
		t.Error(err)
	}
	Await(t, b, news, "x", "told")
}

// Keepers that add to one value at the same time, each trying until it was first, lose nothing.
func swapAdds(t *testing.T, connect Connect) {
	const writers, each = 4, 10
	done := make(chan error, writers)
	for range writers {
		k := connect()
		go func() {
			var err error
			for n := 0; n < each && err == nil; {
				var all values
				if all, err = k.Settings(context.Background()); err != nil {
					break
				}
				var swapped bool
				if swapped, err = k.SwapSetting(context.Background(), "x", all["x"], all["x"]+"+"); swapped {
					n++
				}
			}
			done <- err
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	want(t, connect(), values{"x": strings.Repeat("+", writers*each)})
}

// Watched returns a channel that gets a value whenever settings may have changed.
func Watched(t *testing.T, k settings.Keeper) <-chan struct{} {
	t.Helper()
	news := make(chan struct{}, 100)
	stop := k.WatchSettings(func() { news <- struct{}{} })
	t.Cleanup(stop)
	return news
}

// Await waits until a setting has a value. It reads the settings only when news gets a value.
func Await(t *testing.T, k settings.Keeper, news <-chan struct{}, name, value string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case <-news:
		case <-late:
			t.Fatalf("no news that %s is %q", name, value)
		}
		if got, err := k.Settings(t.Context()); err == nil && got[name] == value {
			return
		}
	}
}

// Put sets one setting.
func Put(t *testing.T, k settings.Keeper, name, value string) {
	t.Helper()
	if _, err := k.PutSettings(t.Context(), values{name: value}, false); err != nil {
		t.Fatal(err)
	}
}

func watch(t *testing.T, connect Connect) {
	a, b := connect(), connect()
	Put(t, a, "x", "before")
	one, two, three := Watched(t, a), Watched(t, a), Watched(t, b)
	for i, by := range []settings.Keeper{a, a, a, b, a} {
		Put(t, by, "x", fmt.Sprint(i))
		Await(t, a, one, "x", fmt.Sprint(i))
		Await(t, a, two, "x", fmt.Sprint(i))
		Await(t, b, three, "x", fmt.Sprint(i))
	}
}

func stop(t *testing.T, connect Connect) {
	k := connect()
	stopped := false
	begun := make(chan struct{}, 100)
	stop := k.WatchSettings(func() {
		if stopped {
			t.Error("called when it was stopped")
		}
		begun <- struct{}{}
	})
	<-begun
	stop()
	stopped = true
	news := Watched(t, k)
	Put(t, k, "x", "1")
	Await(t, k, news, "x", "1")
	stop()
}

func cancelled(t *testing.T, connect Connect) {
	k := connect()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Settings(ctx); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
		t.Errorf("settings: %v", err)
	}
	if _, err := k.PutSettings(ctx, values{"x": "1"}, false); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
		t.Errorf("put: %v", err)
	}
	if _, err := k.SwapSetting(ctx, "x", "", "1"); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
		t.Errorf("swap: %v", err)
	}
	want(t, k, values{})
}
