// Package alone runs a test in a process of its own.
//
// A test that examines the goroutines, the heap, the timers or a setting of the whole
// process also sees those of the tests before it. In a process of its own there are none.
package alone

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// mark is the environment variable with the name of the test that runs alone.
const mark = "RATELIMIT_TEST_ALONE"

// Test reports whether the test runs in a process of its own. If it does not, Test runs it
// in such a process, fails if it fails there, and returns false: the caller then returns.
//
//	if !alone.Test(t) {
//		return
//	}
func Test(t *testing.T) bool {
	t.Helper()
	if os.Getenv(mark) == t.Name() {
		return true
	}
	if err := run(t, t.Name()); err != nil {
		t.Fatal(err)
	}
	return false
}

// run runs the test with a name in a process of its own. It returns an error if the test fails, or if
// the process has not run it.
func run(t *testing.T, name string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"-test.run=^" + regexp.QuoteMeta(name) + "$", "-test.v", fmt.Sprint("-test.short=", testing.Short())}
	if until, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(until).String())
	}
	child := exec.CommandContext(t.Context(), program, args...)
	child.Env = append(os.Environ(), mark+"="+name)
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+name+" ") {
		return fmt.Errorf("the test fails in a process of its own: %v\n%s", err, out)
	}
	return nil
}
