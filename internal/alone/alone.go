// Package alone runs a test in a process of its own.
//
// A test that looks at the goroutines, the heap, the timers or a setting of the whole
// process sees those of the tests before it, too. In a process of its own there are
// none.
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

// mark is the environment variable that names the test which runs alone.
const mark = "RATELIMIT_TEST_ALONE"

// Test reports whether the test runs in a process of its own. If it does not yet, Test
// runs it in such a process, fails as it fails there, and returns false: the caller is
// to return then.
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

// run runs the test of a name in a process of its own. A process that has not run the
// test is an error, too.
func run(t *testing.T, name string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"-test.run=^" + regexp.QuoteMeta(name) + "$", "-test.v"}
	if until, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(until).String())
	}
	child := exec.CommandContext(t.Context(), program, args...)
	child.Env = append(os.Environ(), mark+"="+name)
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+name+" ") {
		return fmt.Errorf("alone, it does not pass: %v\n%s", err, out)
	}
	return nil
}
