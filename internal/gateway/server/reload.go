package server

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// pollInterval is how often the server looks whether files have changed.
const pollInterval = 2 * time.Second

// watch reloads the configuration and certificates when their files change, and at each
// signal, until ctx ends.
func (s *server) watch(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		signal := false
		select {
		case <-ctx.Done():
			return
		case <-s.Reload:
			signal = true
		case <-ticker.C:
		}
		if signal && s.File == "" {
			s.Log.Warn("there is no configuration to reload: the gateway was started without a file")
			continue
		}
		cause := "SIGHUP"
		again := signal
		if s.configFile.changed() {
			cause, again = "file", true
		}
		for _, e := range s.endpoints() {
			if c := e.certificate; c != nil && (c.changed() || signal) {
				s.renew(c)
				again = again || s.reloadFailed.Load() // perhaps because of the certificate
				cause = "file"
			}
		}
		if again {
			s.admin.ReloadFile(cause)
		}
	}
}

// reload reads the configuration again, and returns which limits change. An invalid one changes nothing,
// and neither does a dry run.
func (s *server) reload(dryRun bool) ([]gateway.Changed, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	cfg, changed, err := s.loadAgain()
	if dryRun {
		return changed, err
	}
	old := s.gateway.Config()
	if err != nil {
		s.gateway.ReloadFailed(err)
	} else {
		err = s.gateway.Reload(cfg)
	}
	s.reloadFailed.Store(err != nil)
	if err != nil {
		s.Log.Error("the configuration could not be reloaded: the old one stays", "error", err)
		return nil, err
	}
	s.apply(cfg)
	s.Log.Info("the configuration was reloaded", "keys", cfg.Keys,
		changes("projects", old.Projects, cfg.Projects), changes("models", models(old), models(cfg)))
	s.logTakenBack(changed)
	if needsRestart(old.Server, cfg.Server) {
		s.Log.Warn("max_header, header_timeout and idle_timeout of the server change when the gateway is restarted")
	}
	return changed, nil
}

// loadAgain reads the configuration, and returns which limits it would change.
func (s *server) loadAgain() (*config.Config, []gateway.Changed, error) {
	cfg, err := s.load()
	if err != nil {
		return nil, nil, err
	}
	if cfg.Blank && !s.gateway.Config().Blank {
		return nil, nil, fmt.Errorf("ratelimit: %s is empty now, which would lift all limits: if that is intended, write a setting into it, such as keys: off", s.File)
	}
	changed, err := s.gateway.Changes(cfg)
	return cfg, changed, err
}

// maxNamed is how many names a line of the log has.
const maxNamed = 20

// logTakenBack logs whose limits were set at run time, and are those of the configuration again.
func (s *server) logTakenBack(changed []gateway.Changed) {
	var names []string
	for _, c := range changed {
		if c.SetAtRunTime {
			names = append(names, c.Kind+" "+c.Name)
		}
	}
	if len(names) > 0 {
		s.Log.Warn("limits that were set at run time are those of the configuration again", "count", len(names), "of", names[:min(len(names), maxNamed)])
	}
}

// changes counts the entries of a map that were added, removed and changed.
func changes[V any](name string, old, new map[string]V) slog.Attr {
	added, removed, changed := 0, 0, 0
	for key, now := range new {
		if before, ok := old[key]; !ok {
			added++
		} else if !reflect.DeepEqual(before, now) {
			changed++
		}
	}
	for key := range old {
		if _, ok := new[key]; !ok {
			removed++
		}
	}
	return slog.Group(name, "added", added, "removed", removed, "changed", changed)
}

// models returns the models of a configuration, by "provider/model".
func models(cfg *config.Config) map[string]config.Model {
	all := map[string]config.Model{}
	for name, p := range cfg.Providers {
		for _, m := range p.Models {
			all[name+"/"+m.Name] = m
		}
	}
	return all
}

// needsRestart reports whether settings have changed that a listening server cannot change.
func needsRestart(old, new config.Server) bool {
	return old.MaxHeader != new.MaxHeader || old.HeaderTimeout != new.HeaderTimeout || old.IdleTimeout != new.IdleTimeout
}

// apply logs the configuration's warnings, and sets the level of the log.
func (s *server) apply(cfg *config.Config) {
	for _, warning := range cfg.Warnings {
		s.Log.Warn(warning)
	}
	if s.Level == nil {
		return
	}
	if cfg.Log.Level == "off" {
		s.Level.Set(math.MaxInt)
		return
	}
	var level slog.Level
	if level.UnmarshalText([]byte(cfg.Log.Level)) == nil {
		s.Level.Set(level)
	}
}

// renew reads a certificate from its files again. While only one of the two files was
// replaced, they do not match, and the old certificate stays.
func (s *server) renew(c *certificate) {
	if err := c.load(); err != nil {
		s.Log.Warn("the certificate could not be renewed: the old one stays", "error", err)
		return
	}
	s.Log.Info("the certificate was renewed", "file", c.files.Cert, "expires", c.current.Load().Leaf.NotAfter)
}
