// Package settings follows what is set beside the counters of a store, by
// whoever shares it.
package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/message"
)

// Keeper is a store that keeps values beside the counters, which all who share it
// see.
type Keeper interface {
	// Settings returns all values by their names.
	Settings(ctx context.Context) (map[string]string, error)

	// PutSettings sets values, or only those of names that have none yet, in
	// one step. It returns what the names stand for now.
	PutSettings(ctx context.Context, values map[string]string, onlyNew bool) (map[string]string, error)

	// WatchSettings calls changed when values may have changed, one call at a
	// time, until stop returns. It calls it when it begins to watch, too, and
	// whenever it could not for a while.
	WatchSettings(changed func()) (stop func())
}

const reload = time.Second // after a load that failed

// Follow calls load whenever others may have set something, until stop returns. A
// load that fails is tried again, and its error given to miss.
func Follow(k Keeper, load func(ctx context.Context) error, miss func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stopWatching := k.WatchSettings(func() { loadSoon(ctx, load, miss) })
	return func() {
		cancel()
		stopWatching()
	}
}

func loadSoon(ctx context.Context, load func(ctx context.Context) error, miss func(error)) {
	for {
		err := load(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		miss(err)
		select {
		case <-time.After(reload):
		case <-ctx.Done():
			return
		}
	}
}

// Put sets values of a kind, in JSON, or only those that have none yet. It returns
// what they are now.
func Put[V any](ctx context.Context, k Keeper, kind string, values map[string]V, onlyNew bool) (map[string]string, error) {
	texts := map[string]string{}
	for name, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("ratelimit: the setting of %q: %w", name, err)
		}
		texts[kind+name] = string(text)
	}
	return k.PutSettings(ctx, texts, onlyNew)
}

// none is the value of what was set and is not any more.
const none = "null"

// Unset takes back the value of a name.
func Unset(ctx context.Context, k Keeper, kind, name string) error {
	_, err := k.PutSettings(ctx, map[string]string{kind + name: none}, false)
	return err
}

// Parse returns the values of a kind among all settings, and the names whose values
// were taken back. One that is not valid here, such as a newer program's, is left
// out, and missed.
func Parse[V any](all map[string]string, kind string, check func(name string, v V) error, miss func(error)) (values map[string]V, unset []string) {
	values = map[string]V{}
	for setting, text := range all {
		name, ok := strings.CutPrefix(setting, kind)
		if !ok {
			continue
		}
		if text == none {
			unset = append(unset, name)
			continue
		}
		value, err := parse[V](text)
		if err == nil {
			err = check(name, value)
		}
		if err != nil {
			miss(fmt.Errorf("ratelimit: the store's setting %.80q is not used: %s", setting, message.Plain(err)))
			continue
		}
		values[name] = value
	}
	return values, unset
}

// parse returns a value of which all is understood: a limit that this program
// does not know must not be lost without a word.
func parse[V any](text string) (v V, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var decoded *V
	if err := decoder.Decode(&decoded); err != nil {
		return v, fmt.Errorf("%.200q: %w", text, err)
	}
	if _, err := decoder.Token(); err != io.EOF || decoded == nil {
		return v, fmt.Errorf("%.200q: it must be one value", text)
	}
	return *decoded, nil
}
