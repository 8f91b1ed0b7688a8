package ratelimit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// saved is what a file holds.
type saved struct {
	Quotas map[string]ModelQuota `yaml:"quotas"`
	State  map[string]UsageStats `yaml:"state"`
}

// maxFile is the largest file, in bytes: full windows of a hundred models.
const maxFile = 64 << 20

// readYAML reads the file. One that is missing or empty holds nothing.
func readYAML(path string) (saved, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return saved{}, nil
	}
	if err != nil {
		return saved{}, fmt.Errorf("ratelimit: %w", err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return saved{}, fmt.Errorf("ratelimit: %s: it must be a file, and is %s", path, info.Mode())
	}
	if info.Size() > maxFile {
		return saved{}, fmt.Errorf("ratelimit: %s: %d bytes: it must have %d at most", path, info.Size(), maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return saved{}, fmt.Errorf("ratelimit: %w", err)
	}
	return parseYAML(path, data)
}

// writeYAML replaces the file at once: whoever reads it meanwhile, or after a
// failure, sees the old one or the new one. It refuses what readYAML would.
func writeYAML(path string, s saved) error {
	data, err := formatYAML(s)
	if err != nil {
		return fmt.Errorf("ratelimit: %s: %w", path, err)
	}
	if err := replaceFile(path, data); err != nil {
		return fmt.Errorf("ratelimit: %w", err)
	}
	return nil
}
