package gateway

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// rotatedFile is a file to which lines are appended. If another program has moved it away, as logrotate does, it is made
// anew within a second.
type rotatedFile struct {
	path string
	log  *slog.Logger // has a line if lines are lost

	mu      sync.Mutex
	file    *os.File  // nil: it could not be opened
	checked time.Time // when it was last looked at whether the file is still there
}

// openRotated opens a file to append lines.
func openRotated(path string, log *slog.Logger) (*rotatedFile, error) {
	f := &rotatedFile{path: path, log: log, checked: time.Now()}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("ratelimit: log.requests: %w", err)
	}
	return f, nil
}

// open opens the file, and creates it if it is missing.
func (f *rotatedFile) open() (err error) {
	f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	return err
}

// Write appends a line.
func (f *rotatedFile) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.checked) >= time.Second {
		f.checked = now
		f.check()
	}
	if f.file == nil {
		return 0, os.ErrClosed
	}
	return f.file.Write(line)
}

// check opens the file anew if it is not the one at its path any more.
func (f *rotatedFile) check() {
	if f.file != nil {
		now, err := os.Stat(f.path)
		opened, openedErr := f.file.Stat()
		if err == nil && openedErr == nil && os.SameFile(now, opened) {
			return
		}
		f.file.Close()
	}
	if err := f.open(); err != nil {
		f.file = nil
		f.log.Error("requests are not logged: the file cannot be opened", "error", err)
	}
}

// Close closes the file.
func (f *rotatedFile) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
}
