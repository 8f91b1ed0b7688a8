package main

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

func newModel() *cobra.Command {
	a := &adminFlags{}
	c := &cobra.Command{
		Use:   "model",
		Short: "List models, set their quotas, pause and resume them",
		Long: `List models, set their quotas, pause and resume them, at a running gateway. In a terminal, a
command shows what it would change and asks once. What it changes is in ` + "`ratelimit audit`" + `.`,
		Example: `  ratelimit model list
  ratelimit model set gpt-6-luna max_rpm=500 max_tpm=none
  ratelimit model pause gpt-6-luna`,
		Args: noSuchCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	a.flags(c)
	c.AddCommand(newModelList(a), newModelSet(a), newPause(a, models, true), newPause(a, models, false), newReset(a, models))
	return c
}

// modelFields are the fields of a model that can be set.
var modelFields = fieldsOf(reflect.TypeFor[admin.QuotaSettings]())

func newModelSet(a *adminFlags) *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:   "set MODEL FIELD=VALUE...",
		Short: "Set the quota and other fields of a model",
		Long: `Set the quota and other fields of a model. The fields have the names of the configuration,
what is not named stays, and none removes. If the configuration names the model, its quota
holds until the configuration is read again, unless --until says otherwise.`,
		Example: `  ratelimit model set gpt-6-luna max_rpm=500 max_tpm=200_000
  ratelimit model set gpt-6-luna --remove max_rpd --dry-run`,
		Args: someArguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			patch, err := modelFields.patch(args[1:], f.remove)
			if err != nil {
				return usageError{err}
			}
			return suggestModel(c.Context(), client, args[0], f.set(c, client, models, args[0], patch))
		}),
		ValidArgsFunction: a.completeFields(modelNames, modelFields),
	}
	f.settingFlags(c)
	return c
}

func newModelList(a *adminFlags) *cobra.Command {
	var most int
	c := &cobra.Command{
		Use:     "list",
		Short:   "List models and their quotas, those closest to their limits first",
		Example: "  ratelimit model list\n  ratelimit model list --json",
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, _ []string) error {
			all, err := client.Quotas(c.Context())
			if err != nil {
				return err
			}
			total := len(all)
			slices.SortFunc(all, func(a, b admin.Model) int {
				return cmp.Or(cmp.Compare(modelPressure(b), modelPressure(a)), cmp.Compare(a.Name, b.Name))
			})
			if most > 0 {
				all = all[:min(most, total)]
			}
			return show(c, all, func(width int) []string { return append(quotaLines(all, width), leftOut(len(all), total)...) })
		}),
	}
	c.Flags().IntVarP(&most, "most", "n", 50, "how many are shown; 0 is all")
	jsonFlag(c)
	return c
}

// leftOut says how many of all rows are shown, if that is not all of them.
func leftOut(shown, all int) []string {
	if shown == all {
		return nil
	}
	return []string{console.Faint(fmt.Sprintf("(%s of %s)", numeral.Grouped(int64(shown)), numeral.Grouped(int64(all))))}
}

// quotaLines returns models and their quotas as a table.
func quotaLines(models []admin.Model, width int) []string {
	columns := []console.Column{console.Text("model").Shortened(20), console.Number("waiting"), console.Number("used")}
	for i, k := range modelKinds {
		columns = append(columns, console.Number(k.Name()).Leaves(len(modelKinds)-i+1))
	}
	t := console.NewTable(append(columns, console.Text("origin").Leaves(1), console.Text("").Below())...)
	for _, m := range models {
		row := []string{m.Name, waiting(m.Waiting), percent(modelPressure(m))}
		for _, l := range limitsOf(&admin.Usage{}, &m.Quota) {
			row = append(row, count(int64(l.most)))
		}
		t.AddStyled(styleOf(modelPressure(m), m.Waiting > 0 || m.Stopped || m.Paused > 0), append(row, string(m.Origin), strings.Join(pausesOf(m), ", "))...)
	}
	return t.Lines(width)
}
