package admin

import (
	"net/http"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// Reloaded is the result of a reload.
type Reloaded struct {
	Warnings []string       `json:"warnings"` // settings that are valid, but hardly meant
	Changes  []ReloadChange `json:"changes"`  // the limits that are not what they were, in the order of their kinds and names
}

// ReloadChange is a project or a model whose limits a reload changes.
type ReloadChange struct {
	Kind         string        `json:"kind"`            // "project", "model", or "defaults": the limit of projects that have none of their own
	Name         string        `json:"name,omitempty"`  // of the project, the template or the quota
	Changed      []FieldChange `json:"changed"`         // never empty
	SetAtRunTime bool          `json:"set_at_run_time"` // the old value was set at run time: the configuration has not changed
}

// config returns the configuration without its secrets.
func (a *Admin) config(*http.Request) (any, error) { return a.gateway.Config(), nil }

func (a *Admin) reloadConfig(r *http.Request) (any, error) {
	q, err := parameters(r, "dry_run")
	if err != nil {
		return nil, err
	}
	dryRun, err := flag(q, "dry_run")
	if err != nil {
		return nil, err
	}
	if a.reload == nil {
		return nil, problemf(http.StatusConflict, "the gateway was started without a configuration file: there is nothing to reload")
	}
	if dryRun {
		changed, err := a.reloadLimits(true)
		return Reloaded{[]string{}, reloadChanges(changed)}, err
	}
	var changed []gateway.Changed
	err = a.do(r, change{
		action: "config.reload",
		before: func() any {
			if changed, err := a.reload(true); err == nil {
				return limitsByName(changed, 0)
			}
			return nil // the reload has the same fault, and reports it
		},
		apply: func() (any, error) {
			if changed, err = a.reloadLimits(false); err != nil {
				return nil, err
			}
			return limitsByName(changed, 1), nil
		},
	})
	if err != nil {
		return nil, err
	}
	return Reloaded{append([]string{}, a.gateway.Config().Warnings...), reloadChanges(changed)}, nil
}

// ReloadFile reads the configuration again because its file has changed, or a signal says so, and records in the audit log
// what that has changed. A log that cannot be written does not keep a file from being read.
func (a *Admin) ReloadFile(cause string) {
	a.changing.Lock()
	defer a.changing.Unlock()
	e := Entry{Who: "gateway " + cause, Action: "config.reload", Result: done}
	changed, err := a.reload(false)
	a.endReasons(changed)
	e.Before, e.After = limitsByName(changed, 0), limitsByName(changed, 1)
	if err != nil {
		e.Before, e.After, e.Result, e.Error = nil, nil, failed, message.Plain(err)
	}
	if err := a.audit.write(&e); err != nil {
		a.log.Error("audit: the configuration was reloaded, which cannot be recorded", "error", err)
	}
	a.gateway.Publish(&gateway.Event{Kind: gateway.EventChange, Change: e})
}

// reloadLimits reads the configuration anew, and returns which limits that changes.
func (a *Admin) reloadLimits(dryRun bool) ([]gateway.Changed, error) {
	changed, err := a.reload(dryRun)
	if !dryRun {
		a.endReasons(changed)
	}
	if err != nil {
		return nil, problemf(http.StatusUnprocessableEntity, "the gateway keeps the configuration that it has: %s", message.Plain(err))
	}
	return changed, nil
}

func reloadChanges(all []gateway.Changed) []ReloadChange {
	list := []ReloadChange{}
	for _, c := range all {
		fields, _ := changesOf(documentOf(c, 0), documentOf(c, 1))
		list = append(list, ReloadChange{c.Kind, c.Name, fields, c.SetAtRunTime})
	}
	return list
}

// documentOf returns the limits of a project or a model before a reload (0) or after it (1).
func documentOf(c gateway.Changed, at int) any {
	if c.Kind == gateway.KindModel {
		return newQuota(c.Quota[at])
	}
	return c.Limit[at]
}

// limitsByName returns limits before a reload (0) or after it (1), by the kinds and the names of what
// has them; or nil if nothing changes.
func limitsByName(all []gateway.Changed, at int) any {
	if len(all) == 0 {
		return nil
	}
	byKind := map[string]map[string]any{}
	for _, c := range all {
		if byKind[c.Kind] == nil {
			byKind[c.Kind] = map[string]any{}
		}
		byKind[c.Kind][c.Name] = documentOf(c, at)
	}
	return byKind
}
