package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

func newCheck() *cobra.Command {
	var example bool
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration, and print what it means",
		Long: `Check a configuration, and print what it means. Every fault is printed with its place, as
file:line:column, and the exit code is 1. The command reads secrets and certificates as the
gateway would, and does not show them.`,
		Example: `  ratelimit check gateway.yaml
  ratelimit check --example > gateway.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			if example {
				_, err := io.WriteString(c.OutOrStdout(), config.Example)
				return err
			}
			cfg, err := config.Load(args[0], config.Overrides{})
			if err != nil {
				return err
			}
			for _, warning := range cfg.Warnings {
				fmt.Fprintln(c.ErrOrStderr(), "warning:", strings.TrimPrefix(warning, "ratelimit: "))
			}
			return console.Of(c.OutOrStdout()).Lines(append([]string{args[0] + " is valid", ""}, summary(cfg, console.Of(c.OutOrStdout()).Columns())...))
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	c.Flags().BoolVar(&example, "example", false, "print a configuration with every field and its default")
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && !example:
			return usageError{fmt.Errorf("%s needs FILE, or --example", c.CommandPath())}
		case len(args) > 0 && example:
			return usageError{fmt.Errorf("%s --example does not know what to do with %q", c.CommandPath(), args[0])}
		}
		return arguments(c, args)
	}
	return c
}

// summary returns what a configuration means, as lines for people.
func summary(cfg *config.Config, width int) []string {
	about := console.NewList(2)
	about.Add("clients", cfg.Listen+secured(cfg.TLS))
	about.Add("admin API", aboutAdmin(&cfg.Admin))
	about.Add("state", cfg.RedactedState())
	about.Add("keys", clientsNeed(cfg))
	if len(cfg.Included) > 0 {
		about.Add("included", aboutIncluded(cfg.Included))
	}
	if cfg.Mode == config.ModeShadow {
		about.Add("mode", "shadow: limits count calls, and deny none")
	}
	if users := aboutUsers(cfg.Users); users != "" {
		about.Add("users", users)
	}
	if cfg.Runs != (config.Runs{}) {
		about.Add("runs", aboutRuns(cfg.Runs))
	}
	if cfg.OTLP != nil {
		about.Add("traces", aboutOTLP(cfg.OTLP))
	}
	if cfg.Log.Requests != "" {
		about.Add("requests", "logged in "+cfg.Log.Requests)
	}
	empty := []string{""}
	lines := slices.Concat(about.Lines(width), empty, aboutProviders(cfg, width), empty, aboutModels(cfg, width), empty, aboutProjects(cfg, width))
	return append(lines, aboutHardness(lines, width)...)
}

// aboutIncluded returns the names of files, or of the first of them and how many there are.
func aboutIncluded(files []string) string {
	const most = 5
	if more := len(files) - most; more > 0 {
		return fmt.Sprintf("%s and %d more files", strings.Join(files[:most], ", "), more)
	}
	return strings.Join(files, ", ")
}

func secured(files config.TLS) string {
	if files == (config.TLS{}) {
		return ""
	}
	return ", TLS"
}

func aboutAdmin(a *config.Admin) string {
	if a.Listen == "" {
		return "off"
	}
	text := a.Listen + secured(a.TLS) + ", token"
	if a.Token.Reveal() == "" {
		text = a.Listen + secured(a.TLS) + ", no token"
	}
	if a.OIDC != nil {
		text += ", users sign in at " + a.OIDC.Issuer
	}
	return text
}

// clientsNeed returns what clients need to call.
func clientsNeed(cfg *config.Config) string {
	if cfg.JWT == nil {
		return cfg.Keys
	}
	return cfg.Keys + ", or tokens (JWT) of " + cfg.JWT.Issuer
}

// aboutOTLP returns what a collector gets.
func aboutOTLP(o *config.OTLP) string {
	text := fmt.Sprintf("%d%% of them go to %s", o.Sample, o.Endpoint)
	if o.Metrics > 0 {
		text += fmt.Sprintf(", and metrics every %v", o.Metrics)
	}
	return text
}

func aboutProviders(cfg *config.Config, width int) []string {
	t := console.NewTable(console.Text("provider"), console.Text("kind"), console.Text("at").Shortened(20), console.Text("key"), console.Text("unknown endpoints"))
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		p := cfg.Providers[name]
		for _, deployment := range slices.Sorted(maps.Keys(p.Deployments)) {
			d := p.Deployments[deployment]
			key := "the client's"
			switch {
			case p.ClientLogin:
				key = "the client's login"
			case d.Key.Reveal() != "":
				key = "from the configuration"
			case cfg.Keys == config.KeysRequired:
				key = "none"
			}
			title := name
			if deployment != "" {
				title += " (" + deployment + ")"
			}
			t.Add(title, aboutKind(p), d.BaseURL, key, aboutUnknown(p))
		}
	}
	return t.Lines(width)
}

// aboutUnknown returns what becomes of requests to endpoints that the gateway does not read: a dash where the file does
// not say so.
func aboutUnknown(p *config.Upstream) string {
	text := cmp.Or(p.UnknownEndpoints, "-")
	if n := len(p.EndpointPrices); n > 0 {
		text = strings.TrimPrefix(fmt.Sprintf("%s, %d with a price", text, n), "-, ")
	}
	return text
}

// aboutKind returns the kind of a provider, and whether the file names it.
func aboutKind(p *config.Upstream) string {
	if p.KindGuessed {
		return string(p.Kind) + " (by its address)"
	}
	return string(p.Kind)
}

func aboutModels(cfg *config.Config, width int) []string {
	t := console.NewTable(console.Text("provider"), console.Text("model"), console.Text("quota").Below())
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		for _, m := range cfg.Providers[name].Models {
			title := m.Name
			if len(m.Aliases) > 0 {
				title += " (also " + strings.Join(m.Aliases, ", ") + ")"
			}
			quota := aboutQuota(m.Quota)
			if m.IsDefault && m.Quota.Auto {
				quota = "assumed: " + quota
			}
			t.Add(name, title, quota+aboutMode(m.Mode))
		}
	}
	return t.Lines(width)
}

// limitText returns a limit as a text, such as 500 requests/min or $20.00/day. Without a calendar, a month is any 30 days.
func limitText(k kind.Kind, n int64, calendar bool) string {
	per := k.Window().Short()
	if k.Window() == kind.Month && !calendar {
		per = "/30 days"
	}
	if k.Unit().IsMoney() {
		return price.Amount(n).String() + per
	}
	return numeral.Grouped(n) + " " + k.Unit().Words() + per
}

// listed returns limits as one text, such as 500 requests/min, 30,000 tokens/min.
func listed(limits []string) string {
	if len(limits) == 0 {
		return "unlimited"
	}
	return strings.Join(limits, ", ")
}

func aboutQuota(q ratelimit.ModelQuota) string {
	var limits []string
	for _, k := range modelKinds {
		if n := quotaFields.Get(&q, k); n > 0 {
			limits = append(limits, limitText(k, n, true))
		}
	}
	text := listed(limits)
	if q.DayResetsAt != "" {
		text += ", days from " + q.DayResetsAt
	}
	if q.Pace != "" {
		text += fmt.Sprintf(", paced with a burst of %v", cmp.Or(q.PaceBurst, ratelimit.DefaultPaceBurst))
	}
	if q.Reserve > 0 {
		text += fmt.Sprintf(", %v of it in reserve", q.Reserve)
	}
	switch {
	case q.OnOverrun == project.OverrunCut:
		text += ", calls that use more tokens than there are are cut"
	case q.ReserveTokens == project.ReserveMost:
		text += ", calls reserve the most tokens that they can use"
	case q.ReserveTokens == project.ReserveExpected:
		text += ", calls reserve the tokens that are expected of them"
	}
	text += aboutWeights(q.Count)
	if q.Auto {
		text += ", until the provider reports its own"
	}
	return text
}

func aboutWeights(w ratelimit.TokenWeights) (text string) {
	for _, kind := range []struct {
		name   string
		weight llm.Weight
	}{{"cached input", w.CachedInput}, {"cache writes", w.CacheWrite}, {"output", w.Output}, {"reasoning", w.Reasoning}} {
		if kind.weight.IsSet() {
			text += fmt.Sprintf(", %s counts %s times", kind.name, kind.weight)
		}
	}
	return text
}
