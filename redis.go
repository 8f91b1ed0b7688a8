package ratelimit

import (
	"errors"

	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// newWithRedis returns a limiter whose counters are in Redis.
func newWithRedis(cfg Config) (*RateLimiter, error) {
	made := redisstore.Config{URL: cfg.FilePath, OnStoreLoss: redisstore.StoreLoss(cfg.OnStoreLoss)}
	if cfg.Observer != nil {
		made.OnEvent = OnStoreEvent(cfg.Observer)
	}
	opened, err := redisstore.New(made)
	if err != nil {
		return nil, err
	}
	rl, err := newOnStore(&shared{store: opened, remote: true, owned: true}, cfg)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return rl, nil
}
