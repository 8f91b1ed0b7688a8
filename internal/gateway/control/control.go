// Package control holds what an operator has switched at run time: which projects, models and keys are
// paused, and what a project has in place of what the configuration file says. It is kept among the
// settings of the store, so all gateways on the store follow it, and a restart keeps it.
package control

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/project"
)

// Project is what an operator has set for a project; what is nil or empty is as the file says. Paused and Mode hold
// for all projects below it, too. So does all else but Models, unless one of them has its own.
type Project struct {
	Paused  bool     `json:"paused,omitempty"`
	MaxWait *Seconds `json:"max_wait,omitempty"`
	Models  []string `json:"models,omitempty"` // names or patterns of the models that it may call
	Mode    string   `json:"mode,omitempty"`   // [config.ModeEnforce] or [config.ModeShadow]

	Fit          *bool  `json:"fit,omitempty"`
	FitMin       *int   `json:"fit_min,omitempty"`
	UnknownUsage string `json:"unknown_usage,omitempty"` // [config.UsageReserved] or [config.UsageSeen]
	FailedCalls  string `json:"failed_calls,omitempty"`  // [config.FailedFree] or [config.FailedReserved]
}

// treatsCalls reports whether the operator has set how calls are treated: something that Apply changes.
func (p *Project) treatsCalls() bool {
	return p.MaxWait != nil || p.Fit != nil || p.FitMin != nil || p.UnknownUsage != "" || p.FailedCalls != ""
}

// Apply sets how calls are treated, where the operator has set it for the project.
func (p *Project) Apply(rules *config.Project) {
	if p.MaxWait != nil {
		rules.MaxWait = time.Duration(*p.MaxWait)
	}
	if p.Fit != nil {
		rules.Fit = *p.Fit
	}
	if p.FitMin != nil {
		rules.FitMin = *p.FitMin
	}
	rules.UnknownUsage = cmp.Or(p.UnknownUsage, rules.UnknownUsage)
	rules.FailedCalls = cmp.Or(p.FailedCalls, rules.FailedCalls)
}

// Model is what an operator has set for the quota of a model.
type Model struct {
	Paused bool   `json:"paused,omitempty"`
	Mode   string `json:"mode,omitempty"` // as of a Project
}

// Gateway is what an operator has set for all gateways on the store.
type Gateway struct {
	Mode string `json:"mode,omitempty"` // as of a Project
}

// Key is what an operator has set for a virtual key.
type Key struct {
	Paused bool `json:"paused,omitempty"`
}

const (
	// MaxWait is the longest that calls of a project may wait, as in the configuration file.
	MaxWait = 24 * time.Hour

	maxModels = 100
)

// Check returns what is wrong with the setting of a project, or nil.
func (p *Project) Check() error {
	if err := CheckMode(p.Mode); err != nil {
		return err
	}
	if p.MaxWait != nil && (*p.MaxWait < 0 || *p.MaxWait > Seconds(MaxWait)) {
		return fmt.Errorf("max_wait is %v: it must be from 0 to %v", time.Duration(*p.MaxWait), MaxWait)
	}
	if p.FitMin != nil && (*p.FitMin < config.MinFit || *p.FitMin > config.MaxFit) {
		return fmt.Errorf("fit_min is %d: it must be from %d to %d", *p.FitMin, config.MinFit, config.MaxFit)
	}
	if !slices.Contains([]string{"", config.UsageReserved, config.UsageSeen}, p.UnknownUsage) {
		return fmt.Errorf("unknown_usage is %.40q: it must be %s or %s", p.UnknownUsage, config.UsageReserved, config.UsageSeen)
	}
	if !slices.Contains([]string{"", config.FailedFree, config.FailedReserved}, p.FailedCalls) {
		return fmt.Errorf("failed_calls is %.40q: it must be %s or %s", p.FailedCalls, config.FailedFree, config.FailedReserved)
	}
	if len(p.Models) > maxModels {
		return fmt.Errorf("models has %d names: it may have %d; a pattern stands for many", len(p.Models), maxModels)
	}
	for _, name := range p.Models {
		if name == "" || !modelname.Valid(name) {
			return fmt.Errorf("models has %.60q: it must be a name or a pattern, of at most %d bytes of UTF-8 and without control characters", name, modelname.MaxBytes)
		}
	}
	return nil
}

// CheckMode returns what is wrong with a mode, or nil.
func CheckMode(mode string) error {
	switch mode {
	case "", config.ModeEnforce, config.ModeShadow:
		return nil
	}
	return fmt.Errorf("mode is %.40q: it must be %s or %s", mode, config.ModeEnforce, config.ModeShadow)
}

// State is what is switched at one time. It never changes. Its methods return zero values for what
// nobody has switched.
type State struct {
	gateway  map[string]Gateway // under allGateways
	projects map[string]Project
	models   map[string]Model
	keys     map[string]Key
	ended    map[string]map[string]int64 // under allGateways: when the sessions would end that were signed out, in Unix seconds
	terms    map[string]Term             // by kind and name
	hasTerms bool                        // a project has Models, or says how calls are treated
	modes    bool                        // something has a Mode

	pausesModels bool // a model is paused
}

// allGateways is the name under which a State has what is set for all gateways.
const allGateways = "all"

// Gateway returns what is set for all gateways.
func (s *State) Gateway() Gateway { return s.gateway[allGateways] }

// SessionEnded reports whether a browser has signed out of a session of the admin API.
func (s *State) SessionEnded(id string) bool { return s.ended[allGateways][id] != 0 }

// HasModes reports whether something has a Mode.
func (s *State) HasModes() bool { return s.modes }

// Project returns what is set for a project itself.
func (s *State) Project(id string) Project { return s.projects[id] }

// Model returns what is set for the quota of a model.
func (s *State) Model(quota string) Model { return s.models[quota] }

// Key returns what is set for a key.
func (s *State) Key(id string) Key { return s.keys[id] }

// Projects returns the ids of the projects for which something is set.
func (s *State) Projects() []string {
	var ids []string
	for id := range s.projects {
		ids = append(ids, id)
	}
	return ids
}

// PausedAt returns which project pauses a path: the highest of those that do. It returns "" if none does.
func (s *State) PausedAt(path string) string {
	if len(s.projects) == 0 {
		return ""
	}
	for id := range Levels(path) {
		if s.projects[id].Paused {
			return id
		}
	}
	return ""
}

// PausesModels reports whether any model is paused.
func (s *State) PausesModels() bool { return s.pausesModels }

// PausesInside reports whether any project below a path is paused.
func (s *State) PausesInside(path string) bool {
	for id, p := range s.projects {
		if p.Paused && strings.HasPrefix(id, path+"/") {
			return true
		}
	}
	return false
}

// Apply sets how calls of a path are treated, as the innermost of its projects says for which something is set.
func (s *State) Apply(path string, rules *config.Project) {
	for id := range Levels(path) {
		p := s.projects[id]
		p.Apply(rules)
	}
}

// Levels returns the ids of the projects on a path, the highest first: acme and acme/search.
func Levels(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range len(path) {
			if path[i] == '/' && !yield(path[:i]) {
				return
			}
		}
		yield(path)
	}
}

// HasTerms reports whether a project has Models, or says how calls are treated.
func (s *State) HasTerms() bool { return s.hasTerms }

// checkProject returns what is wrong with a setting of a project, or nil.
func checkProject(id string, p Project) error {
	if err := project.CheckID(id); err != nil {
		return err
	}
	return p.Check()
}

func checkModel(name string, m Model) error {
	if err := modelname.Check(name); err != nil {
		return err
	}
	return CheckMode(m.Mode)
}

func checkGateway(name string, g Gateway) error {
	if name != allGateways {
		return fmt.Errorf("%.40q is not a setting of all gateways", name)
	}
	return CheckMode(g.Mode)
}

func checkEnded(name string, _ map[string]int64) error {
	if name != allGateways {
		return fmt.Errorf("%.40q is not a setting of all gateways", name)
	}
	return nil
}

func checkKey(id string, _ Key) error {
	if id == "" || strings.Contains(id, "/") {
		return fmt.Errorf("%.40q is not the id of a key", id)
	}
	return nil
}
