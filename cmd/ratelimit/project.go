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
	c.AddCommand(newProjectList(a), newProjectSet(a), newPause(a, projects, true), newPause(a, projects, false), newReset(a, projects))
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
			return f.set(c, client, projects, args[0], patch)
		}),
		ValidArgsFunction: a.completeFields(projectNames, projectFields),
	}
	f.settingFlags(c)
	return c
}
