// Package scenarios tests the gateway as a whole, under load and while things go wrong:
// real processes, real stores, real connections, and a mock provider that knows what it
// was sent.
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

// program is the command, built for these tests.
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
	program = filepath.Join(dir, "ratelimit")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/ratelimit").CombinedOutput(); err != nil {
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
