// Command pictures draws the pictures of the README and of the documents. They show no
// durations, so that every machine draws the same bytes, and a test keeps the files current.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// pictures are the files that are drawn.
var pictures = map[string]func() []byte{
	"overshoot.svg":  overshoot,
	"algorithms.svg": algorithms,
	"shares.svg":     shares,
}

// folder is where the documents expect the files, from the folder of the module.
const folder = "../docs/pictures"

func main() {
	if err := write(folder); err != nil {
		fmt.Fprintf(os.Stderr, "pictures: %v\n", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, draw := range pictures {
		if err := os.WriteFile(filepath.Join(folder, name), draw(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
