package control

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// kept is the settings of a store in memory. It reports no changes.
type kept struct {
	values map[string]string
	fault  error
}

func (k *kept) Settings(context.Context) (map[string]string, error) {
	return maps.Clone(k.values), k.fault
}

func (k *kept) PutSettings(_ context.Context, values map[string]string, _ bool) (map[string]string, error) {
	if k.fault == nil {
		maps.Copy(k.values, values)
	}
	return values, k.fault
}

func (k *kept) SwapSetting(_ context.Context, name, old, new string) (bool, error) {
	if k.fault != nil || k.values[name] != old {
		return false, k.fault
	}
	k.values[name] = new
	return true, nil
}

func (k *kept) WatchSettings(func()) (stop func()) { return func() {} }

// What is set on one board is found on another on the same store, and settings of others are left alone.
func TestBoardsShareAStore(t *testing.T) {
	store := &kept{values: map[string]string{"project/acme": `{"requests_per_minute":1}`}}
	one, err := Open(store)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Open(store)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	stop := two.Watch(func(s *State) { seen = append(seen, s.PausedAt("acme/search")) })
	wait, fit := 3*time.Second, true
	for _, err := range []error{
		one.SetProject(t.Context(), "acme", Project{Paused: true, MaxWait: (*Seconds)(&wait), Fit: &fit, FailedCalls: config.FailedReserved, Models: []string{"gpt-*"}, Mode: "shadow"}),
		one.SetModel(t.Context(), "gpt-4o", Model{Paused: true}),
		one.SetKey(t.Context(), "abcdefghij", Key{Paused: true}),
		one.SetGateway(t.Context(), Gateway{Mode: "shadow"}),
		two.Load(t.Context()),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := two.State()
	rules := config.Project{MaxWait: time.Hour, FailedCalls: config.FailedFree, FitMin: 64}
	s.Apply("acme/search/alice", &rules)
	testkit.Equal(t, "how calls are treated", config.Project{MaxWait: wait, Fit: true, FitMin: 64, FailedCalls: config.FailedReserved}, rules)
	if !s.Model("gpt-4o").Paused || !s.Key("abcdefghij").Paused || s.Gateway().Mode != "shadow" || !s.HasTerms() || !s.HasModes() {
		t.Errorf("%+v", s)
	}
	if err := one.SetProject(t.Context(), "acme", Project{}); err != nil {
		t.Fatal(err)
	}
	if err := two.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := one.SetProject(t.Context(), "acme", Project{Paused: true}); err != nil {
		t.Fatal(err)
	}
	two.Load(t.Context())
	testkit.Equal(t, "what the watcher has seen", []string{"", "acme", ""}, seen)
}

// A setting that this program does not understand is left out, and an error of the store changes nothing.
func TestBadSettings(t *testing.T) {
	store := &kept{values: map[string]string{
		"control/project/good":   `{"paused":true}`,
		"control/project/newer":  `{"paused":true,"from":"the future"}`,
		"control/project/a//b":   `{"paused":true}`,
		"control/project/wait":   `{"max_wait":-5}`,
		"control/model/m":        `{"mode":"half"}`,
		"control/key/":           `{"paused":true}`,
		"control/gateway/other":  `{"mode":"shadow"}`,
		"control/project/broken": `{"paused":`,
	}}
	b, err := Open(store)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "the projects", []string{"good"}, b.State().Projects())
	if err := b.Missed(); err == nil || !strings.Contains(err.Error(), "is not used") {
		t.Errorf("%v", err)
	}
	for _, err := range []error{
		b.SetProject(t.Context(), "a//b", Project{Paused: true}),
		b.SetProject(t.Context(), "p", Project{Mode: "half"}),
		b.SetModel(t.Context(), "", Model{}),
		b.SetKey(t.Context(), "", Key{}),
		b.SetGateway(t.Context(), Gateway{Mode: "on"}),
	} {
		if err == nil {
			t.Error("it is set")
		}
	}
	store.fault = errors.New("lost")
	if err := b.SetProject(t.Context(), "good", Project{}); !errors.Is(err, store.fault) || b.State().PausedAt("good") == "" {
		t.Errorf("%v: the pause must stay", err)
	}
	if err := b.Load(t.Context()); !errors.Is(err, store.fault) || b.State().PausedAt("good") == "" {
		t.Errorf("%v: the pause must stay", err)
	}
}

// The store remembers which sessions were ended until they would end by themselves, and a bounded number of them.
func TestEndedSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &kept{values: map[string]string{}}
		board, err := Open(store)
		if err != nil {
			t.Fatal(err)
		}
		end := func(id string, in time.Duration) {
			t.Helper()
			if err := board.EndSession(t.Context(), id, time.Now().Add(in).Unix()); err != nil {
				t.Fatal(err)
			}
		}
		end("short", time.Minute)
		end("long", time.Hour)
		if s := board.State(); !s.SessionEnded("short") || !s.SessionEnded("long") || s.SessionEnded("other") {
			t.Errorf("%+v", s.ended)
		}
		time.Sleep(2 * time.Minute)
		many := map[string]int64{"long": time.Now().Add(58 * time.Minute).Unix()}
		for i := range maxEnded - 1 {
			many[strconv.Itoa(i)] = time.Now().Add(2 * time.Hour).Unix()
		}
		if _, err := settings.Put(t.Context(), store, endedPrefix, map[string]map[string]int64{allGateways: many}, false); err != nil {
			t.Fatal(err)
		}
		end("last", 2*time.Hour)
		if s := board.State(); len(s.ended[allGateways]) != maxEnded || s.SessionEnded("short") || s.SessionEnded("long") || !s.SessionEnded("0") || !s.SessionEnded("last") {
			t.Errorf("%d sessions are remembered", len(s.ended[allGateways]))
		}
	})
}
