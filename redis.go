package ratelimit

import (
	"errors"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// newWithRedis returns a limiter whose counters are in Redis.
func newWithRedis(cfg Config) (*RateLimiter, error) {
	opened, err := redisstore.New(redisstore.Config{
		URL: cfg.FilePath, Timeout: cfg.redisTimeout, OnStoreLoss: redisstore.StoreLoss(cfg.OnStoreLoss), OnEvent: event.OfStore(cfg.Observer),
	})
	if err != nil {
		return nil, err
	}
	rl, err := newOnStore(opened, true, cfg)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return rl, nil
}
