// Command flakes looks for tests that fail by chance. It runs the tests of packages many times, in another order each
// time, with 1, 2 and 8 threads of Go at once, on a machine that it starves of CPU and of its disk. It lists every test
// that has ever failed, with what repeats the run. The flags behind -- are go test's, for compiling.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "flakes:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("flakes", flag.ContinueOnError)
	modules := fs.String("modules", ".", "the `folders` of the modules, with spaces between them")
	only := fs.String("packages", ".", "the packages whose path matches this `pattern`")
	rounds := fs.Int("rounds", 30, "how often each package is tested")
	calm := fs.Bool("calm", false, "leave the machine to the tests")
	logs := fs.String("logs", "flakes", "the `folder` for what failed runs have printed")
	if err := fs.Parse(args); err != nil {
		return err
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-packages: %w", err)
	}
	work, err := os.MkdirTemp("", "flakes")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	h := &hunt{out: out, work: work, logs: *logs}
	for _, module := range strings.Fields(*modules) {
		if err := h.compile(module, wanted, fs.Args()); err != nil {
			return err
		}
	}
	if !*calm {
		defer starve(work)()
	}
	for round := range *rounds {
		h.round(round)
		fmt.Fprintf(out, "round %d of %d: %d failures so far\n", round+1, *rounds, len(h.failures))
	}
	return h.report()
}

// A program has the tests of a package.
type program struct{ path, folder, name string }

// A failure is a test that failed, and what repeats the run.
type failure struct {
	test string
	settings
}

type settings struct {
	name    string // the package's
	threads int
	seed    int64
}

func (s settings) String() string {
	return fmt.Sprintf("GOMAXPROCS=%d go test -race -short -shuffle=%d %s", s.threads, s.seed, s.name)
}

// A hunt is the programs that are run, and what has failed of them.
type hunt struct {
	out        io.Writer
	work, logs string
	programs   []program

	mu       sync.Mutex
	failures []failure
}

// compile makes a program of the tests of each package of a module.
func (h *hunt) compile(module string, wanted *regexp.Regexp, flags []string) error {
	list := exec.Command("go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}} {{.ImportPath}}{{end}}", "./...")
	list.Dir, list.Stderr = module, os.Stderr
	found, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list in %s: %w", module, err)
	}
	for line := range strings.Lines(string(found)) {
		folder, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !wanted.MatchString(name) {
			continue
		}
		p := program{filepath.Join(h.work, strconv.Itoa(len(h.programs))+".test"), folder, name}
		build := exec.Command("go", append(append([]string{"test", "-c", "-o", p.path}, flags...), name)...)
		build.Dir, build.Stdout, build.Stderr = module, h.out, os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("go test -c %s: %w", name, err)
		}
		h.programs = append(h.programs, p)
	}
	return nil
}

// round runs every program once, as many at a time as the machine has cores.
func (h *hunt) round(round int) {
	threads := []int{1, 2, 8}[round%3]
	places := make(chan struct{}, runtime.NumCPU())
	var all sync.WaitGroup
	for _, p := range h.programs {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			h.test(p, settings{p.name, threads, time.Now().UnixNano()})
		})
	}
	all.Wait()
}

// failed matches the names of tests that fail, or that run when the time is up.
var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^\t\t(Test\S+) \(`)

func (h *hunt) test(p program, s settings) {
	c := exec.Command("nice", p.path, "-test.short", "-test.timeout=30m", fmt.Sprintf("-test.shuffle=%d", s.seed))
	c.Dir, c.Env = p.folder, append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", s.threads))
	printed, err := c.CombinedOutput()
	if err == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	names := failed.FindAllSubmatch(printed, -1)
	for _, name := range names {
		h.failures = append(h.failures, failure{string(name[1]) + string(name[2]), s})
	}
	if len(names) == 0 {
		h.failures = append(h.failures, failure{err.Error(), s})
	}
	path := filepath.Join(h.logs, fmt.Sprintf("%s-%d.log", strings.ReplaceAll(p.name, "/", "_"), s.seed))
	if err := errors.Join(os.MkdirAll(h.logs, 0o755), os.WriteFile(path, printed, 0o644)); err != nil {
		fmt.Fprintln(h.out, err)
	}
	fmt.Fprintf(h.out, "FAIL %s\n     %s\n", s, path)
}

// report lists the tests that have failed, and how often.
func (h *hunt) report() error {
	if len(h.failures) == 0 {
		fmt.Fprintf(h.out, "no test of %d packages has failed\n", len(h.programs))
		return nil
	}
	count := map[string]int{}
	for _, f := range h.failures {
		count[f.name+" "+f.test]++
	}
	for _, f := range h.failures {
		fmt.Fprintf(h.out, "%s (%d times)\n     %s\n", f.test, count[f.name+" "+f.test], f.settings)
	}
	return fmt.Errorf("%d failures", len(h.failures))
}
