package config

import (
	"os"
	"path/filepath"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// defaults returns the configuration of a gateway without a file. Without a home directory, its
// State is empty.
func defaults() *Config {
	c := &Config{
		Listen:      "127.0.0.1:8080",
		Admin:       Admin{Listen: "127.0.0.1:8081"},
		OnStoreLoss: "deny",
		Keys:        KeysOff,
		Mode:        ModeEnforce,
		Providers:   map[string]*Upstream{},
		Projects:    map[string]*Project{},
		Defaults:    &Project{Limit: project.Limit{Weight: 1}, MaxWait: 30 * time.Second, UnknownUsage: UsageReserved, FailedCalls: FailedFree, FitMin: dialect.DefaultFitMin},
		Thresholds:  Thresholds{At: []int{50, 80, 100}},
		Books:       Books{Hours: 35 * day, Days: 400 * day},
		Prices:      price.Known(),
		Server: Server{
			MaxBody:       32 << 20,
			MaxBodies:     1 << 30,
			MaxHeader:     64 << 10,
			HeaderTimeout: 10 * time.Second,
			BodyTimeout:   time.Minute,
			WriteTimeout:  time.Minute,
			WhileWaiting:  WaitComments,
			ReadOn:        5 * time.Second,
			IdleTimeout:   2 * time.Minute,
			Drain:         30 * time.Second,
			RetryAfterMax: dialect.DefaultRetryAfterMax,
		},
		Log: Log{Level: "info", Sample: 1},
	}
	if home, err := os.UserHomeDir(); err == nil {
		c.State = filepath.Join(home, ".core", "ratelimits.db")
	}
	for name := range builtIn {
		c.Providers[name] = newProvider(name)
		c.Providers[name].addDefaults(name)
	}
	return c
}
