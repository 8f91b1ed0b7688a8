// Package statefile keeps the quotas and the usage of a limiter in a YAML file.
package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"dappco.re/go/core/go-ratelimit/internal/state"
)

// File is the content of a file, by model.
type File struct {
	Quotas map[string]state.Quota
	State  map[string]state.Usage
}

// maxFile is the largest file, in bytes: full windows of a hundred models.
const maxFile = 64 << 20

// maxParts is how many keys and values a file may stand for.
const maxParts = 10_000_000

// Read reads a file. A file that is missing or empty has no quotas and no usage.
func Read(path string) (File, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, nil
	}
	if err != nil {
		return File{}, fmt.Errorf("ratelimit: %w", err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return File{}, fmt.Errorf("ratelimit: %s: it must be a file, and is %s", path, info.Mode())
	}
	if info.Size() > maxFile {
		return File{}, fmt.Errorf("ratelimit: %s: %d bytes: it must have %d at most", path, info.Size(), maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return File{}, fmt.Errorf("ratelimit: %w", err)
	}
	return parse(path, string(text))
}

// Write replaces a file as a whole: readers see the old content or the new, even after a failure. It
// returns an error for content that Read would not accept.
func Write(path string, f File) error {
	text, err := format(f)
	if err != nil {
		return fmt.Errorf("ratelimit: %s: %w", path, err)
	}
	if err := replaceFile(path, text); err != nil {
		return fmt.Errorf("ratelimit: %w", err)
	}
	return nil
}
