package main

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

func newProject() *cobra.Command {
	a := &adminFlags{}
	c := &cobra.Command{
		Use:   "project",
		Short: "List projects, set their limits, pause and resume them",
		Long: `List projects, set their limits, pause and resume them, at a running gateway. In a terminal,
a command shows what it would change and asks once. What it changes is in ` + "`ratelimit audit`" + `.`,
		Example: `  ratelimit project list
  ratelimit project set acme requests_per_minute=100 tokens_per_day=none
  ratelimit project pause acme/search`,
		Args: noSuchCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	a.flags(c)
	c.AddCommand(newProjectList(a), newProjectSet(a), newProjectPause(a, true), newProjectPause(a, false), newProjectReset(a))
	return c
}

// projectFields are the fields of a project that can be set.
var projectFields = fieldsOf(reflect.TypeFor[admin.ProjectSettings]())

func newProjectSet(a *adminFlags) *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:   "set PROJECT FIELD=VALUE...",
		Short: "Set limits and other fields of a project",
		Long: `Set limits and other fields of a project. The fields have the names of the configuration,
what is not named stays, and none removes. If the configuration names the project, its limits
hold until the configuration is read again, unless --until says otherwise.`,
		Example: `  ratelimit project set acme requests_per_minute=100 dollars_per_day=2.50
  ratelimit project set acme tokens_per_day=none weight=3 models='gpt-6*,claude*'
  ratelimit project set acme --remove tokens_per_day --dry-run`,
		Args: someArguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			patch, err := projectFields.patch(args[1:], f.remove)
			if err != nil {
				return usageError{err}
			}
			if err := checkProject(c.Context(), client, args[0]); err != nil {
				if _, refused := errors.AsType[*admin.Problem](err); refused {
					return err
				}
				fmt.Fprintln(c.ErrOrStderr(), "new:", err)
			}
			return f.set(c, projectNamed(c, client, args[0]), patch)
		}),
		ValidArgsFunction: a.completeFields(projectNames, projectFields),
	}
	f.settingFlags(c)
	return c
}

func projectNamed(c *cobra.Command, client *admin.Client, id string) editable {
	return editable{
		title:   "project " + id,
		remark:  "If the configuration names the project, this holds until the configuration is read again: change it there, too, or add --until forever.",
		preview: func(p admin.Patch) (admin.Preview, error) { return client.PreviewProject(c.Context(), id, p) },
		patch:   func(p admin.Patch) (any, error) { return client.PatchProject(c.Context(), id, p) },
		term:    client.SetTerm,
	}
}

// newProjectPause returns the command that pauses a project, or the one that resumes it.
func newProjectPause(a *adminFlags, pause bool) *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:     "pause PROJECT",
		Short:   "Stop all calls of a project and of those below it, until it is resumed",
		Example: "  ratelimit project pause acme/search",
	}
	if !pause {
		c.Use, c.Short, c.Example = "resume PROJECT", "Let calls of a project pass again", "  ratelimit project resume acme/search"
	}
	c.Args, c.ValidArgsFunction = arguments, a.complete(projectNames)
	c.RunE = a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
		if err := checkProject(c.Context(), client, args[0]); err != nil {
			return err
		}
		return f.pause(c, projectNamed(c, client, args[0]), pause)
	})
	f.flags(c)
	if pause {
		f.pauseFlags(c)
	}
	return c
}

// pause pauses or resumes what is named, after a question if it pauses.
func (f *changeFlags) pause(c *cobra.Command, of editable, pause bool) error {
	sentence := of.title + " is resumed"
	if pause {
		of.term(f.until, f.reason)
		sentence = of.title + " is paused: its calls are denied until it is resumed"
		if f.until != "" && f.until != "reload" && f.until != "forever" {
			sentence = of.title + " is paused: its calls are denied for " + f.until
		}
		if err := f.confirm(c, "Pause "+of.title+"?"); err != nil {
			return err
		}
	}
	now, err := of.patch(admin.Patch{"paused": pause})
	if err != nil {
		return err
	}
	return f.done(c, now, sentence)
}

func newProjectReset(a *adminFlags) *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:     "reset PROJECT",
		Short:   "Set what a project has used to zero",
		Example: "  ratelimit project reset acme/search",
		Args:    arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			if err := checkProject(c.Context(), client, args[0]); err != nil {
				return err
			}
			return f.reset(c, client, admin.Reset{Project: args[0]}, "project "+args[0])
		}),
		ValidArgsFunction: a.complete(projectNames),
	}
	f.flags(c)
	return c
}

// reset sets what was used to zero, after a question.
func (f *changeFlags) reset(c *cobra.Command, client *admin.Client, of admin.Reset, title string) error {
	if err := f.confirm(c, "Set what "+title+" has used to zero?"); err != nil {
		return err
	}
	if err := client.Reset(c.Context(), of); err != nil {
		return err
	}
	return f.done(c, of, "what "+title+" has used is zero")
}
