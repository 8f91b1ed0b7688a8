// Package docs holds the tests of what the documentation says.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// document is a Markdown file of the repository.
type document struct {
	path  string // from the root, with slashes
	lines []string
}

// documents returns all Markdown files of the repository.
func documents(t *testing.T) (all []document) {
	t.Helper()
	for _, path := range files(t, ".md") {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, document{filepath.ToSlash(path), strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")})
	}
	if len(all) < 20 {
		t.Fatalf("only %d documents were found", len(all))
	}
	return all
}

// files returns the paths, from the root, of the files of ours that have a suffix.
func files(t *testing.T, suffix string) (paths []string) {
	t.Helper()
	skipped := []string{".git", "node_modules", "testdata"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, suffix):
			path, err = filepath.Rel(root, path)
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
