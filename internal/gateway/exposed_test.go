package gateway

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
)

// A state that others may write to is logged at the start. The gateway makes files for its owner alone.
func TestExposedStateIsLogged(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here")
	}
	for mode, exposed := range map[os.FileMode]bool{0: false, 0o600: false, 0o644: false, 0o666: true, 0o620: true, 0o602: true} {
		path := filepath.Join(t.TempDir(), "state.db")
		if mode != 0 {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil { // whatever the umask is
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		g, err := New(gatewaytest.Config(t, "state: "+path+"\n", ""), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if logged := strings.Contains(log.String(), "others may change the state"); logged != exposed {
			t.Errorf("%04o: logged: %v:\n%s", mode, logged, &log)
		}
		if info, err := os.Stat(path); err != nil || mode == 0 && info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
}
