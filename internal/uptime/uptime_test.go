package uptime_test

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"testing/synctest"

	"dappco.re/go/core/go-ratelimit/internal/uptime"
)

// The time since the boot does not go back, and another process knows the same boot.
func TestRead(t *testing.T) {
	boot, elapsed, ok := uptime.Read()
	if os.Getenv("UPTIME_CHILD") != "" {
		os.Stdout.WriteString(boot + "\n")
		os.Exit(0)
	}
	if known := runtime.GOOS == "linux" || runtime.GOOS == "darwin"; ok != known || ok && (boot == "" || elapsed <= 0) {
		t.Fatalf("%q, %d, %v", boot, elapsed, ok)
	}
	if _, later, _ := uptime.Read(); later < elapsed {
		t.Errorf("it went back from %d to %d", elapsed, later)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command(program, "-test.run=^TestRead$")
	other.Env = append(os.Environ(), "UPTIME_CHILD=1")
	if said, err := other.Output(); err != nil || string(said) != boot+"\n" {
		t.Errorf("another process read %q, %v; want %q", said, err, boot)
	}
}

// Where time is fake, the machine's does not count.
func TestReadFake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if boot, elapsed, ok := uptime.Read(); ok {
			t.Errorf("%q, %d", boot, elapsed)
		}
	})
}
