package telemetry

import (
	"os/exec"
	"strings"
	"testing"
)

// program returns the path of one of Prometheus's programs.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is needed: run scripts/deps.sh, or on Debian: sudo apt-get install prometheus (%v)", name, err)
	}
	return path
}

// promtool runs promtool, which must find nothing wrong.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	cmd := exec.Command(program(t, "promtool"), args...)
	cmd.Stdin = strings.NewReader(input)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}
