// Package settings reads and writes the settings that a store keeps beside its counters,
// and follows the changes of other nodes that share the store.
package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/message"
)

// Keeper is a store that also keeps settings, which all nodes that share it see.
type Keeper interface {
	// Settings returns all values by their names.
	Settings(ctx context.Context) (map[string]string, error)

	// PutSettings sets values by their names, in one step. If onlyNew is set, it sets only values
	// of names that have none. It returns the values that the given names have then.
	PutSettings(ctx context.Context, values map[string]string, onlyNew bool) (map[string]string, error)

	// SwapSetting sets the value of a name if the value is still old; an empty old is none. It
	// reports whether it did.
	SwapSetting(ctx context.Context, name, old, new string) (bool, error)

	// WatchSettings calls changed when values may have changed, one call at a time, until stop
	// returns. It also calls changed when it begins to watch, and whenever it can watch again after
	// it could not.
	WatchSettings(changed func()) (stop func())
}

const retryAfter = time.Second // the time between two attempts to load

// PollInterval is how often a watcher of a file checks whether another process has changed settings. Tests
// whose fake time goes on for days make it longer.
var PollInterval = time.Second

// A load reads all settings. So that many changes one after another do not cost a load each, Follow rests after a load:
// restFactor times as long as the load took, and at most maxRest.
const (
	restFactor = 4
	maxRest    = time.Second
)

// Follow calls load whenever another node may have changed settings, until stop returns. If load
// fails, Follow passes the error to miss and calls load again.
func Follow(k Keeper, load func(ctx context.Context) error, miss func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stopWatching := k.WatchSettings(func() { retryLoad(ctx, load, miss) })
	return func() {
		cancel()
		stopWatching()
	}
}

// retryLoad calls load until it succeeds or ctx ends, and rests.
func retryLoad(ctx context.Context, load func(ctx context.Context) error, miss func(error)) {
	for {
		began := time.Now()
		err := load(ctx)
		if err == nil || ctx.Err() != nil {
			wait(ctx, min(restFactor*time.Since(began), maxRest))
			return
		}
		miss(err)
		wait(ctx, retryAfter)
	}
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Put sets values of a kind, encoded as JSON, as [Keeper.PutSettings] does. kind is the prefix of the
// names.
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

// Swap sets the value of a name if nobody has changed it since all settings were read. It reports whether
// it did. A nil value unsets the name.
func Swap[V any](ctx context.Context, k Keeper, all map[string]string, kind, name string, value *V) (bool, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return false, fmt.Errorf("ratelimit: the setting of %q: %w", name, err)
	}
	return k.SwapSetting(ctx, kind+name, all[kind+name], string(text))
}

// none is the value of a name whose value was unset.
const none = "null"

// Unset unsets the value of a name.
func Unset(ctx context.Context, k Keeper, kind, name string) error {
	_, err := k.PutSettings(ctx, map[string]string{kind + name: none}, false)
	return err
}

// Parse returns the values of a kind among all settings, and the names whose values were unset. It
// leaves out values that are not valid for this program, such as those of a newer one, and passes the
// error to miss.
func Parse[V any](all map[string]string, kind string, check func(name string, v V) error, miss func(error)) (values map[string]V, unset []string) {
	values = map[string]V{}
	for setting, text := range all {
		name, ok := strings.CutPrefix(setting, kind)
		if !ok {
			continue
		}
		value, err := Decode[V](text)
		switch {
		case err != nil:
			err = fmt.Errorf("%.200q: %w", text, err)
		case value == nil:
			unset = append(unset, name)
			continue
		default:
			err = check(name, *value)
		}
		if err != nil {
			miss(fmt.Errorf("ratelimit: the store's setting %.80q is not used: %s", setting, message.Plain(err)))
			continue
		}
		values[name] = *value
	}
	return values, unset
}

// Decode decodes a value. For a value that was unset it returns nil. Unknown fields are an error,
// because a limit that this program does not know must not be lost silently. Errors do not contain the
// text.
func Decode[V any](text string) (v *V, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("it must be one value")
	}
	return v, nil
}
