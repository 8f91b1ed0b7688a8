package config

import (
	"context"
	"crypto/sha256"
	"time"
)

// Watch calls changed whenever what a file holds has become something else, until ctx
// ends. It looks at the file every so often, so it does not matter how the file is
// replaced: written over, renamed, or behind a symbolic link that is. A change counts
// when it is still there a look later, so that a file is not read while it is written;
// one that is missing has not changed.
func Watch(ctx context.Context, path string, every time.Duration, changed func()) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	known, _ := sum(path)
	for last := known; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, ok := sum(path)
		if !ok {
			continue
		}
		if now == last && now != known {
			known = now
			changed()
		}
		last = now
	}
}

// sum tells what a file holds, and whether it is there.
func sum(path string) ([sha256.Size]byte, bool) {
	text, err := readFile(path)
	return sha256.Sum256(text), err == nil
}
