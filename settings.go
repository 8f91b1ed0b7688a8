package ratelimit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
)

// settings is a store that keeps values beside the counters, which all who share
// it see.
type settings interface {
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

// posted is quotas as settings: one a model, in JSON.
type posted struct {
	settings settings
	miss     func(error)
}

const quotaSetting = "quota/" // and the model's name

func (p *posted) putQuotas(quotas map[string]ModelQuota) error {
	_, err := p.put(quotas, false)
	return err
}

func (p *posted) addQuotas(quotas map[string]ModelQuota) (map[string]ModelQuota, error) {
	values, err := p.put(quotas, true)
	return p.parse(values), err
}

func (p *posted) load(ctx context.Context, rl *RateLimiter) error {
	values, err := p.settings.Settings(ctx)
	if err != nil {
		return err
	}
	return rl.setQuotas(p.parse(values))
}

// save has nothing to write: what was set at run time is there, and what else a node
// goes by is in its Config, where the next one may say otherwise.
func (p *posted) save(*RateLimiter) error { return nil }

func (p *posted) put(quotas map[string]ModelQuota, onlyNew bool) (map[string]string, error) {
	values := map[string]string{}
	for model, quota := range quotas {
		text, err := json.Marshal(quota)
		if err != nil {
			return nil, fmt.Errorf("ratelimit: quota of %q: %w", model, err)
		}
		values[quotaSetting+model] = string(text)
	}
	return p.settings.PutSettings(context.Background(), values, onlyNew)
}

// parse returns the quotas that are among the settings. One that is not valid
// here, such as a newer program's, is left out, and missed.
func (p *posted) parse(values map[string]string) map[string]ModelQuota {
	quotas := map[string]ModelQuota{}
	for name, text := range values {
		model, ok := strings.CutPrefix(name, quotaSetting)
		if !ok {
			continue
		}
		quota, err := parseQuota(model, text)
		if err != nil {
			p.miss(fmt.Errorf("ratelimit: the store's setting %.80q is not used: %w", name, bare{err}))
			continue
		}
		quotas[model] = quota
	}
	return quotas
}

// parseQuota returns a quota of which all is understood: a limit that this
// program does not know must not be lost without a word.
func parseQuota(model, text string) (ModelQuota, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var quota *ModelQuota
	if err := decoder.Decode(&quota); err != nil {
		return ModelQuota{}, fmt.Errorf("%.200q: %w", text, err)
	}
	if _, err := decoder.Token(); err != io.EOF || quota == nil {
		return ModelQuota{}, fmt.Errorf("%.200q: it must be one quota", text)
	}
	_, err := newRulesOf(map[string]ModelQuota{model: *quota})
	return *quota, err
}

// follow loads the quotas whenever others have set one, until Close.
func (rl *RateLimiter) follow(s settings) {
	ctx, cancel := context.WithCancel(context.Background())
	stop := s.WatchSettings(func() { rl.loadSoon(ctx) })
	rl.unfollow = func() {
		cancel()
		stop()
	}
}

const reload = time.Second // after a Load that failed

// loadSoon loads the quotas, now or when the store can be asked again.
func (rl *RateLimiter) loadSoon(ctx context.Context) {
	for {
		err := rl.load(ctx)
		if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return
		}
		rl.miss(err)
		select {
		case <-time.After(reload):
		case <-ctx.Done():
			return
		}
	}
}
