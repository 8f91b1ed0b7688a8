package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// subject is a kind of what operators change: projects, models or keys.
type subject struct {
	kind       admin.Subject
	word       string // for one of them, as in the names of commands
	argument   string // in usage lines
	example    string // a name
	calls      string // whose calls a pause stops
	configured bool   // the configuration may name it, and undoes changes of its limits when it is read again
	names      names  // for completions

	// find calls do for one of them. An error about a name that nothing has suggests the one that was probably meant.
	find func(ctx context.Context, client *admin.Client, name string, do func() error) error
}

var projects = subject{
	kind: admin.SubjectProject, word: "project", argument: "PROJECT", example: "acme/search", calls: "of a project and of those below it", names: projectNames,
	configured: true,
	find: func(ctx context.Context, client *admin.Client, name string, do func() error) error {
		if err := checkProject(ctx, client, name); err != nil {
			return err
		}
		return do()
	},
}

var models = subject{
	kind: admin.SubjectModel, word: "model", argument: "MODEL", example: "gpt-6-luna", calls: "of a model", names: modelNames,
	configured: true,
	find: func(ctx context.Context, client *admin.Client, name string, do func() error) error {
		return suggestModel(ctx, client, name, do())
	},
}

var virtualKeys = subject{
	kind: admin.SubjectKey, word: "key", argument: "ID", example: "ID", calls: "with a key", names: keyNames,
	find: func(_ context.Context, _ *admin.Client, _ string, do func() error) error { return do() },
}

// newPause returns the command that pauses one of a kind, or the one that resumes it.
func newPause(a *adminFlags, of subject, pause bool) *cobra.Command {
	var f changeFlags
	name, short := "pause", "Stop all calls "+of.calls+", until it is resumed"
	if !pause {
		name, short = "resume", "Let calls "+of.calls+" pass again"
	}
	c := &cobra.Command{
		Use: name + " " + of.argument, Short: short, Example: fmt.Sprintf("  ratelimit %s %s %s", of.word, name, of.example), Args: arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			return of.find(c.Context(), client, args[0], func() error { return f.pause(c, client, of, args[0], pause) })
		}),
		ValidArgsFunction: a.complete(of.names),
	}
	f.flags(c)
	if pause {
		f.termFlags(c, "resume it after this `TIME`, such as 30m, 2h or 7d (default: never)")
	}
	return c
}

// pause pauses or resumes one of a kind, after a question if it pauses.
func (f *changeFlags) pause(c *cobra.Command, client *admin.Client, of subject, name string, pause bool) error {
	title, edit := of.word+" "+name, admin.Edit{Of: of.kind, Name: name, Patch: admin.Patch{"paused": pause}}
	sentence := title + " is resumed"
	if pause {
		edit.Until, edit.Reason = f.until, f.reason
		sentence = title + " is paused: its calls are denied until it is resumed"
		if f.until != "" && f.until != "reload" && f.until != "forever" {
			sentence = title + " is paused: its calls are denied for " + f.until
		}
		if err := f.confirm(c, "Pause "+title+"?"); err != nil {
			return err
		}
	}
	now, err := admin.Apply[json.RawMessage](c.Context(), client, edit)
	if err != nil {
		return err
	}
	return f.done(c, now, sentence)
}

// newReset returns the command that sets to zero what a project or a model has used.
func newReset(a *adminFlags, of subject) *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use: "reset " + of.argument, Short: "Set what a " + of.word + " has used to zero", Example: fmt.Sprintf("  ratelimit %s reset %s", of.word, of.example), Args: arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			return of.find(c.Context(), client, args[0], func() error { return f.reset(c, client, of, args[0]) })
		}),
		ValidArgsFunction: a.complete(of.names),
	}
	f.flags(c)
	return c
}

// reset sets what was used to zero, after a question.
func (f *changeFlags) reset(c *cobra.Command, client *admin.Client, of subject, name string) error {
	title, reset := of.word+" "+name, admin.Reset{Project: name}
	if of.kind == admin.SubjectModel {
		reset = admin.Reset{Model: name}
	}
	if err := f.confirm(c, "Set what "+title+" has used to zero?"); err != nil {
		return err
	}
	if err := client.Reset(c.Context(), reset); err != nil {
		return err
	}
	return f.done(c, reset, "what "+title+" has used is zero")
}
