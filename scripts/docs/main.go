// Command docs writes the parts of the documentation that are generated: every field of the
// gateway's file, from internal/gateway/config/example.yaml, and every operation of the admin API, from its
// OpenAPI document, and every kind of limit. Before, it adds the kinds of limits that these two files lack. It runs in
// the root of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

const folder = "docs/reference"

// pages are the files, by their names, and what makes each of the repository at a root.
var pages = map[string]func(root string) (string, error){
	"configuration.md": configuration,
	"admin.md":         admin,
	"limits.md":        limits,
}

func write(root string) error {
	for name := range blocks {
		text, err := current(root, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
		return err
	}
	for name, page := range pages {
		text, err := page(root)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(root, folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
