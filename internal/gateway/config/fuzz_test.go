package config_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/project"
)

// Any file is a valid configuration, or has faults with lines, and nothing else.
func FuzzParse(f *testing.F) {
	f.Add(config.Example)
	f.Add(wholeFile(f))
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := config.Parse("gateway.yaml", []byte(text))
		if err != nil {
			faults(t, text, err)
			return
		}
		valid(t, c)
		shown, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := config.Parse("gateway.yaml", shown)
		if err != nil && !strings.Contains(err.Error(), "secret does not belong") && !c.Redis() {
			t.Errorf("what is shown of it is not valid: %v\n%s", err, shown)
		} else if err == nil {
			valid(t, again)
		}
	})
}

// faultsOf returns the faults that an error joins, or nil if it has anything else.
func faultsOf(err error) (all []config.Fault) {
	joined, _ := err.(interface{ Unwrap() []error })
	if joined == nil {
		return nil
	}
	for _, err := range joined.Unwrap() {
		f, ok := err.(config.Fault)
		if !ok {
			return nil
		}
		all = append(all, f)
	}
	return all
}

func faults(t *testing.T, text string, err error) {
	t.Helper()
	all := faultsOf(err)
	if len(all) == 0 {
		t.Fatalf("%T: %v", err, err)
	}
	lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 2
	for _, f := range all {
		if f.Line < 1 || f.Line > lines || f.Column < 1 || f.Problem == "" {
			t.Errorf("%+v of %d lines", f, lines)
		}
	}
}

func valid(t *testing.T, c *config.Config) {
	t.Helper()
	for name, p := range c.Providers {
		if len(p.Deployments) == 0 {
			t.Errorf("%s has no deployments", name)
		}
		for _, d := range p.Deployments {
			if !strings.HasPrefix(d.BaseURL, "http://") && !strings.HasPrefix(d.BaseURL, "https://") {
				t.Errorf("%s is at %q", name, d.BaseURL)
			}
		}
		for _, m := range p.Models {
			if err := m.Quota.Validate(); err != nil {
				t.Error(err)
			}
			for _, said := range append(m.Aliases, m.Name) {
				if found, ok := p.Find(said); !ok || found.Name != m.Name {
					t.Errorf("%s: %q means %q, not %q", name, said, found.Name, m.Name)
				}
			}
		}
	}
	c.Projects["the defaults"] = c.Defaults
	for id, p := range c.Projects {
		if err := errors.Join(p.Limit.Validate(), project.CheckPath(strings.ReplaceAll(id, "the defaults", "x"))); err != nil {
			t.Error(err)
		}
	}
	delete(c.Projects, "the defaults")
	if c.State == "" || c.Listen == "" {
		t.Errorf("%+v", c)
	}
}
