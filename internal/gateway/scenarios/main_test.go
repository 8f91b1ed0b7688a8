// Package scenarios tests the whole gateway under load and with faults: with real processes,
// stores and connections, and a mock provider that records the requests that it gets.
package scenarios

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

// program is the path of the command, which is built for these tests.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if runtime.GOOS == "windows" {
		fmt.Println("skipped: processes have no signals here")
		return 0
	}
	dir, err := os.MkdirTemp("", "scenarios")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir) // killed gateways leave their sockets there
	program = filepath.Join(dir, "ratelimit")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "../../../cmd/ratelimit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as a release is built: its packages are compiled once for all tests
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("%v\n%s", err, out)
		return 1
	}
	code := m.Run()
	client.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		return 1
	}
	return code
}
