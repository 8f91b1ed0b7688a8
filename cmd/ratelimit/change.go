package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// changeFlags are the flags of commands that change something.
type changeFlags struct {
	yes, dryRun, asJSON bool
	remove              []string
	until, reason       string
}

func (f *changeFlags) flags(c *cobra.Command) {
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask in a terminal")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
}

// settingFlags are the flags of commands that set fields.
func (f *changeFlags) settingFlags(c *cobra.Command) {
	f.flags(c)
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would change")
	f.termFlags(c, "undo it after this `TIME`, such as 30m, 2h or 7d; \"forever\" keeps it whatever the configuration says, \"reload\" until that is next read (default reload)")
	c.Flags().StringSliceVar(&f.remove, "remove", nil, "remove this `FIELD`, as FIELD=none does")
}

// termFlags are the flags that say for how long a change holds, and why it is made.
func (f *changeFlags) termFlags(c *cobra.Command, until string) {
	c.Flags().StringVar(&f.until, "until", "", until)
	c.Flags().StringVar(&f.reason, "reason", "", "why, for the audit log: a `TEXT` of one line")
}

// holds returns the remark that says for how long a change of one of a kind holds.
func (f *changeFlags) holds(of subject) string {
	switch f.until {
	case "", "reload":
		return "If the configuration names the " + of.word + ", this holds until the configuration is read again: change it there, too, or add --until forever."
	case "forever":
		return "This holds until somebody changes it, whatever the configuration says."
	}
	return "This is undone in " + f.until + "."
}

// jsonFlag adds the flag --json to a command that calls show.
func jsonFlag(c *cobra.Command) { c.Flags().Bool("json", false, "print JSON") }

// show prints a value: with --json as JSON, and otherwise as the lines for people that lines returns for a width.
func show(c *cobra.Command, value any, lines func(width int) []string) error {
	out := console.Of(c.OutOrStdout())
	if asJSON, _ := c.Flags().GetBool("json"); asJSON {
		return out.JSON(value)
	}
	return out.Lines(lines(out.Columns()))
}

// confirm asks in a terminal whether to go on.
func (f *changeFlags) confirm(c *cobra.Command, question string) error {
	if f.yes {
		return nil
	}
	return console.Of(c.ErrOrStderr()).Confirm(c.InOrStdin(), question)
}

// done prints what has become of a change.
func (f *changeFlags) done(c *cobra.Command, now any, sentence string) error {
	return show(c, now, func(width int) []string { return console.Sentences(width, sentence) })
}

// set shows what a patch would change, asks, and makes the change.
func (f *changeFlags) set(c *cobra.Command, client *admin.Client, of subject, name string, p admin.Patch) error {
	title, edit := of.word+" "+name, admin.Edit{Of: of.kind, Name: name, Patch: p, Until: f.until, Reason: f.reason, DryRun: true}
	preview, err := admin.Apply[admin.Preview](c.Context(), client, edit)
	if err != nil {
		return err
	}
	if f.dryRun && f.asJSON {
		return console.Of(c.OutOrStdout()).JSON(preview)
	}
	if len(preview.Changed) == 0 && f.until == "" && f.reason == "" {
		return f.done(c, preview.After, title+" has these values already: nothing changes")
	}
	to := console.Of(c.ErrOrStderr())
	if f.dryRun {
		to = console.Of(c.OutOrStdout())
	}
	if len(preview.Changed) > 0 {
		if err := to.Lines(previewLines(title, preview, to.Columns())); err != nil {
			return err
		}
	}
	if f.dryRun {
		return nil
	}
	if err := f.confirm(c, "Change this?"); err != nil {
		return err
	}
	edit.DryRun = false
	now, err := admin.Apply[json.RawMessage](c.Context(), client, edit)
	if err != nil {
		return err
	}
	if of.configured && (len(preview.Changed) == 0 || slices.ContainsFunc(preview.Changed, ofTheFile)) {
		if err := to.Lines(console.Sentences(to.Columns(), f.holds(of))); err != nil {
			return err
		}
	}
	return f.done(c, now, title+" is changed")
}

// ofTheFile reports whether the next reading of the configuration undoes a change, if the configuration names what was
// changed. The other fields win over the configuration.
func ofTheFile(change admin.FieldChange) bool { return !admin.IsSwitched(change.Field) }

// previewLines returns what a change would change.
func previewLines(title string, p admin.Preview, width int) []string {
	t := console.NewTable(console.Text(title), console.Text("now").Shortened(12), console.Text("").Leaves(1), console.Text("then").Shortened(12))
	for _, change := range p.Changed { // a key's limits are set without limit. before their names
		t.Add(strings.TrimPrefix(change.Field, "limit."), fieldInWords(change.Field, change.Before), "→", fieldInWords(change.Field, change.After))
	}
	lines := t.Lines(width)
	if len(p.Lifted) > 0 {
		lines = append(lines, bad(width, "This lifts limits: "+strings.Join(p.Lifted, ", ")+".")...)
	}
	return lines
}

// fieldInWords returns the value of a field for people. Fields that win over the configuration are as that says while
// they are not set.
func fieldInWords(field string, v any) string {
	seconds, isNumber := v.(float64)
	switch {
	case v == nil && field == "models":
		return "none of its own"
	case v == nil && field != "paused" && admin.IsSwitched(field):
		return "as configured"
	case isNumber && field == "max_wait":
		return time.Duration(seconds * 1e9).String()
	}
	return inWords(v)
}

// inWords returns a value of JSON for people.
func inWords(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
