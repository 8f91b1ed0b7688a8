package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/gateway/admin"
)

func newStatus() *cobra.Command {
	a := &asking{}
	var asJSON, watch bool
	c := &cobra.Command{
		Use:     "status",
		Short:   "Show what models and projects use of their limits",
		Long:    "Show what models and projects use of their limits, at a gateway that runs.",
		Example: "  ratelimit status --watch\n  ratelimit status --json | jq '.models[] | select(.paused_seconds > 0)'\n  RATELIMIT_ADMIN_TOKEN=… ratelimit status --admin https://gateway:8081",
		Args:    arguments,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			if watch {
				return a.watch(c, client, asJSON)
			}
			return a.show(c, client, newScreen(c.OutOrStdout()), asJSON)
		},
	}
	a.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "go on, every second, until Ctrl-C")
	return c
}

// watch shows the status again and again. Ctrl-C is no error.
func (a *asking) watch(c *cobra.Command, client *admin.Client, asJSON bool) error {
	s := newScreen(c.OutOrStdout())
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := a.show(c, client, s, asJSON)
		if c.Context().Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-c.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

func (a *asking) show(c *cobra.Command, client *admin.Client, s *screen, asJSON bool) error {
	state, err := client.State(c.Context())
	if err != nil {
		return a.explain(client, err)
	}
	if asJSON {
		return printJSON(c.OutOrStdout(), state)
	}
	return s.show(statusLines(state))
}

// statusLines returns a state as people read it.
func statusLines(s admin.State) []string {
	lines := []string{fmt.Sprintf("gateway %s at %s, up %v, state in %s, keys %s, %d requests active",
		s.Version, s.Listen, (time.Duration(s.Uptime) * time.Second), s.Store, s.Keys, s.Active)}
	if !s.Ready {
		lines = append(lines, "NOT READY: "+s.Reason)
	}
	lines = append(append(lines, ""), modelLines(s.Models)...)
	if len(s.Projects) > 0 {
		lines = append(append(lines, ""), projectLines(s.Projects)...)
	}
	if s.More {
		lines = append(lines, "and more: --json has no more either, ask the admin API for pages of /v1/projects")
	}
	return lines
}

// modelLines returns the models of which something is used, and how many others there
// are.
func modelLines(models []admin.Model) []string {
	t := table{head: []string{"model", ">requests/min", ">tokens/min", ">input/min", ">output/min", ">requests/day", ">tokens/day", ">at a time", ""}}
	idle := 0
	for _, m := range models {
		u, q := m.Usage, m.Quota
		switch {
		case u == nil:
			t.add(m.Name, "?", "?", "?", "?", "?", "?", "?", "the store does not answer")
			continue
		case *u == (admin.Usage{}) && m.Paused == 0:
			idle++
			continue
		}
		note := ""
		if m.Paused > 0 {
			note = fmt.Sprintf("paused by the provider for %.0f s", m.Paused)
		}
		t.add(m.Name, used(u.RPM, q.MaxRPM), used(u.TPM, q.MaxTPM), used(u.InputTPM, q.MaxInputTPM), used(u.OutputTPM, q.MaxOutputTPM),
			used(u.RPD, q.MaxRPD), used(u.TPD, q.MaxTPD), used(u.Concurrent, q.MaxConcurrent), note)
	}
	var lines []string
	if len(t.rows) > 0 {
		lines = t.withoutEmpty("-").lines()
	}
	if idle > 0 {
		lines = append(lines, fmt.Sprintf("(%d models of which nothing is used)", idle))
	}
	return lines
}

// used returns how much of a quota is used; of none it is not known.
func used(n, most int) string {
	if most == 0 {
		return "-"
	}
	return thousands(int64(n)) + " / " + thousands(int64(most))
}

func projectLines(projects []admin.Project) []string {
	t := table{head: []string{"project", ">weight", "used"}}
	for _, p := range projects {
		var windows []string
		for _, w := range p.Windows {
			windows = append(windows, fmt.Sprintf("%s %s / %s", w.Name, thousands(w.Limit-w.Remaining), thousands(w.Limit)))
		}
		if len(windows) == 0 {
			windows = []string{"no limits"}
		}
		t.add(p.ID, fmt.Sprint(max(p.Limit.Weight, 1)), strings.Join(windows, ", "))
	}
	return t.lines()
}

func printLines(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
