package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// most is the exposure that systemd may find: 10 is everything, 100 in the unit of --threshold.
const most = "15"

// The unit is valid, and systemd finds that it has few rights.
func TestUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd is not here")
	}
	text, err := os.ReadFile("systemd/ratelimit.service")
	if err != nil {
		t.Fatal(err)
	}
	// The program need not be installed on this machine.
	unit := filepath.Join(t.TempDir(), "ratelimit.service")
	adapted := strings.Replace(string(text), "/usr/bin/ratelimit", "/bin/true", 1)
	if err := os.WriteFile(unit, []byte(adapted), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	if out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold="+most, unit).CombinedOutput(); err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
}

// The unit leaves the store to the configuration: a flag would win over the file, and machines that share Redis by their
// files would each count alone.
func TestUnitNamesNoState(t *testing.T) {
	text, err := os.ReadFile("systemd/ratelimit.service")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "--state") || !strings.Contains(string(text), "--config") {
		t.Errorf("the unit: %s", text)
	}
}
