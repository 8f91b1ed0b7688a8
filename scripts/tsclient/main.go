// Command tsclient writes a TypeScript client of the admin API, which it makes from the API's OpenAPI
// document. Run it by make client.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"dappco.re/go/core/go-ratelimit/internal/tsclient"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: tsclient DOCUMENT FILE, such as internal/gateway/admin/openapi.json client/ratelimit.ts")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "tsclient:", err)
		os.Exit(1)
	}
}

func run(document, file string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	client, err := tsclient.Generate(text)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, client, 0o644)
}
