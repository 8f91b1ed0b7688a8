package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

func newMigrate() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate [YAML] [SQLITE]",
		Short: "Copy quotas and usage from a YAML file into a SQLite file",
		Long: `Copy quotas and usage from a YAML file into a SQLite file, where they replace those that
the SQLite file holds. The YAML file does not change. The command can be repeated; if it
fails, the SQLite file is as it was.

Without arguments the files are ~/.core/ratelimits.yaml and ~/.core/ratelimits.db.`,
		Example: "  ratelimit migrate\n  ratelimit migrate old.yaml new.db",
		Args:    arguments,
		RunE: func(c *cobra.Command, args []string) error {
			from, to, err := migrationFiles(args)
			if err != nil {
				return err
			}
			if err := ratelimit.MigrateYAMLToSQLite(from, to); err != nil {
				return err
			}
			return reportMigration(c, from, to)
		},
	}
}

func migrationFiles(args []string) (from, to string, err error) {
	if len(args) == 2 {
		return args[0], args[1], nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", "", fmt.Errorf("there is no home directory, so name both files: %w", err)
	}
	from, to = filepath.Join(home, ".core", "ratelimits.yaml"), filepath.Join(home, ".core", "ratelimits.db")
	if len(args) == 1 {
		from = args[0]
	}
	return from, to, nil
}

// reportMigration prints what the SQLite file holds after the migration.
func reportMigration(c *cobra.Command, from, to string) error {
	rl, err := ratelimit.NewWithSQLiteConfig(to, ratelimit.Config{NoDefaults: true})
	if err != nil {
		return err
	}
	defer rl.Close()
	requests, tokens := 0, 0
	for _, usage := range rl.State() {
		requests += len(usage.Requests)
		for _, entry := range usage.Tokens {
			tokens += entry.Count
		}
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "moved from %s to %s\n  models with a quota  %d\n  requests of the last minute  %d\n  tokens of the last minute  %d\n",
		from, to, len(rl.Quotas()), requests, tokens)
	return err
}
