// Command suite runs the tests of this module, and of others, with go test. Packages with the race detector and those
// without it are tested at once: while some wait, others compute. It prints the result of every package, everything that
// a failed test has printed, and at the end the slowest tests and those that failed. The flags behind -- are go test's.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("suite", flag.ContinueOnError)
	first := fs.String("first", "", "`packages` of this module that are tested before its others, because they take longest")
	plain := fs.String("plain", "", "`packages` of this module that are tested beside the others, without the race detector")
	modules := fs.String("modules", "", "`folders` of other modules, which are tested after the plain packages, without the race detector")
	slowest := fs.Int("slowest", 10, "how many of the slowest tests to print")
	if err := fs.Parse(args); err != nil {
		return err
	}
	early, without := strings.Fields(*first), strings.Fields(*plain)
	others, err := packages(without)
	if err != nil {
		return err
	}
	r := &report{out: out, printed: map[test][]string{}}
	var raced, failed error
	var running sync.WaitGroup
	running.Go(func() { raced = r.test(".", fs.Args(), append(early, others...)) })
	flags := slices.DeleteFunc(slices.Clone(fs.Args()), func(flag string) bool { return flag == "-race" || strings.HasPrefix(flag, "-gcflags=") })
	if len(without) > 0 {
		failed = r.test(".", flags, without, "CGO_ENABLED=0")
	}
	for _, module := range strings.Fields(*modules) {
		failed = errors.Join(failed, r.test(module, flags, []string{"./..."}, "CGO_ENABLED=0"))
	}
	running.Wait()
	r.summarize(*slowest)
	return errors.Join(raced, failed)
}

// packages lists the packages of this module, but not those that are tested in another way.
func packages(without []string) ([]string, error) {
	c := exec.Command("go", "list", "./...")
	c.Stderr = os.Stderr
	output, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return slices.DeleteFunc(strings.Fields(string(output)), func(name string) bool {
		return slices.ContainsFunc(without, func(folder string) bool { return strings.HasSuffix(name, strings.TrimPrefix(folder, ".")) })
	}), nil
}

// A test is named as go test names it. Name is empty for what a package prints by itself.
type test struct{ Package, Name string }

// A result is how a test has ended.
type result struct {
	test
	seconds float64
	failed  bool
}

// An event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// A report is what is known of the tests that have run.
type report struct {
	out     io.Writer
	mu      sync.Mutex
	printed map[test][]string // what tests that have not ended have printed
	results []result
}

// test runs the tests of packages of a module, with variables in its environment.
func (r *report) test(module string, flags, packages []string, environment ...string) error {
	c := exec.Command("go", slices.Concat([]string{"test", "-json"}, flags, packages)...)
	c.Dir, c.Stderr, c.Env = module, os.Stderr, append(os.Environ(), environment...)
	output, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			r.print("%s\n", lines.Bytes()) // go itself has printed it
			continue
		}
		r.add(e)
	}
	if err := errors.Join(lines.Err(), c.Wait()); err != nil {
		return fmt.Errorf("go test in %s: %w", module, err)
	}
	return nil
}

func (r *report) print(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format, args...)
}

func (r *report) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.printed[t] = append(r.printed[t], e.Output)
	case "pass", "fail", "skip":
		failed := e.Action == "fail"
		if e.Test == "" { // its last line is the result
			lines := r.printed[t]
			if !failed && len(lines) > 0 {
				lines = lines[len(lines)-1:]
			}
			fmt.Fprint(r.out, strings.Join(lines, ""))
		} else {
			printed := strings.Join(r.printed[t], "")
			if failed || strings.Contains(printed, "WARNING: DATA RACE") { // which fails the tests beside this one
				fmt.Fprint(r.out, printed)
			}
			r.results = append(r.results, result{t, e.Elapsed, failed})
		}
		delete(r.printed, t)
	}
}

// summarize prints the slowest tests, without the parts that a test runs by t.Run, and those that failed.
func (r *report) summarize(slowest int) {
	for t, lines := range r.printed { // its process was killed or has panicked
		fmt.Fprintf(r.out, "%s %s has not ended:\n%s", t.Package, t.Name, strings.Join(lines, ""))
	}
	whole := slices.DeleteFunc(slices.Clone(r.results), func(t result) bool { return strings.Contains(t.Name, "/") })
	slices.SortFunc(whole, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintf(r.out, "\n%d tests; the slowest:\n", len(whole))
	for _, t := range whole[:min(slowest, len(whole))] {
		fmt.Fprintf(r.out, "%7.1f s  %s %s\n", t.seconds, t.Package, t.Name)
	}
	for _, t := range r.results {
		if t.failed {
			fmt.Fprintf(r.out, "FAILED: %s %s\n", t.Package, t.Name)
		}
	}
}
