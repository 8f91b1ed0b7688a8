package ratelimit

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A limiter reports a file that others may write to, to OnError. Persist and Close return no error because of it.
func TestExposedFilesAreReported(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here")
	}
	for _, backend := range []string{BackendYAML, BackendSQLite} {
		for mode, want := range map[os.FileMode]int{0o600: 0, 0o640: 0, 0o660: 1, 0o666: 1} {
			path := filepath.Join(t.TempDir(), "state")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			var told []error
			rl, err := NewWithConfig(Config{Backend: backend, FilePath: path, OnError: func(err error) { told = append(told, err) }})
			if err != nil {
				t.Fatal(err)
			}
			if len(told) != want {
				t.Errorf("%s with %04o: %v", backend, mode, told)
			}
			if err := rl.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
