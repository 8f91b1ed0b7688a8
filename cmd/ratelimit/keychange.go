package main

import (
	"reflect"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// keyFields are the fields of a key that can be changed. Only projects have a weight, a priority and shares.
var keyFields = fieldsOf(reflect.TypeFor[admin.KeySettings](), "limit").without("weight", "priority", "min_share", "max_share", "dedicated")

func newKeyChange(a *adminFlags) *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:   "change ID FIELD=VALUE...",
		Short: "Change the limits and the models of a key",
		Long: `Change the limits and the models of a key. The fields have the names of the configuration,
what is not named stays, and none removes.`,
		Example: `  ratelimit key change ID requests_per_minute=10 dollars_per_day=none
  ratelimit key change ID models='gpt-6*'`,
		Args: someArguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			patch, err := keyFields.patch(args[1:], f.remove)
			if err != nil {
				return usageError{err}
			}
			return f.set(c, client, virtualKeys, args[0], keyPatch(patch))
		}),
		ValidArgsFunction: a.completeFields(keyNames, keyFields),
	}
	f.settingFlags(c)
	return c
}

// keyPatch returns a patch in which the fields of the limit are in limit.
func keyPatch(p admin.Patch) admin.Patch {
	limit, all := map[string]any{}, admin.Patch{}
	for name, value := range p {
		if name == "models" {
			all[name] = value
			continue
		}
		limit[name] = value
		all["limit"] = limit
	}
	return all
}
