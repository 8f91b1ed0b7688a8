// Command benchmarks measures this module beside its peers in one run, prints the ratios and draws
// them. See README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"time"
)

func main() {
	if child() {
		return
	}
	os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `Measures this module beside its peers, prints the ratios and draws them. A
full run takes about eight minutes and wants an otherwise idle machine with at
least two cores.

  go run . [flags]

  go run . -list                     what there is to measure
  go run . -run hot                  the scenarios whose names match
  go run . -run 'keyed/1M|memory'
  go run . -time 200ms               longer, and steadier

Progress goes to stderr, the tables to stdout. A required figure that is missed
is marked MISS and does not change the exit status.

Flags:
`

// options are what the command line asks for.
type options struct {
	run      *regexp.Regexp
	slice    time.Duration
	plots    string
	profiles string
	before   string
	list     bool
}

// errUsage is for what the flag package has explained already.
var errUsage = errors.New("usage")

func parse(args []string, stderr io.Writer) (options, error) {
	var (
		o       options
		pattern string
	)
	fs := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprint(stderr, usage)
		fs.PrintDefaults()
	}
	fs.StringVar(&pattern, "run", ".", "measure the scenarios whose names match this `regexp`")
	fs.DurationVar(&o.slice, "time", 60*time.Millisecond, "`duration` of one contestant's turn in one round; a wait runs for 20 of them")
	fs.StringVar(&o.plots, "plots", "../docs/plots", "write SVG plots to this `directory`; empty: none")
	fs.StringVar(&o.profiles, "profiles", "", "write profiles of the proxies to this `directory`; empty: none")
	fs.StringVar(&o.before, "before", "", "run the gateways of this `program`, an earlier build of this one, beside ours, and compare")
	fs.BoolVar(&o.list, "list", false, "list the scenarios and exit")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, errUsage
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: all settings are flags, see -h", fs.Arg(0))
	}
	if o.slice <= 0 {
		return o, fmt.Errorf("-time %v: must be longer than nothing, such as 60ms", o.slice)
	}
	var err error
	if o.run, err = regexp.Compile(pattern); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	return o, nil
}

// Main is the program. It returns the exit status: 0, 1 for a failure, 2 for a misuse.
func Main(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	case err != nil:
		fmt.Fprintf(stderr, "benchmarks: %v\n", err)
		return 2
	}
	chosen := choose(scenarios(), o.run)
	if len(chosen) == 0 {
		fmt.Fprintf(stderr, "benchmarks: -run %q matches no scenario; -list shows their names\n", o.run)
		return 2
	}
	if o.list {
		list(stdout, chosen)
		return 0
	}
	b := &bench{slice: o.slice, rounds: 7, shrink: 1, profiles: o.profiles, before: o.before}
	if err := measure(b, chosen, o.plots, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "benchmarks: %v\n", err)
		return 1
	}
	return 0
}

func choose(all []scenario, run *regexp.Regexp) []scenario {
	var chosen []scenario
	for _, s := range all {
		if run.MatchString(s.name) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

func list(w io.Writer, all []scenario) {
	for _, s := range all {
		fmt.Fprintf(w, "%-24s %s\n", s.name, s.about)
	}
}

// measure runs the scenarios, prints what they found and draws it.
func measure(b *bench, chosen []scenario, plots string, stdout, stderr io.Writer) error {
	if plots != "" {
		if err := os.MkdirAll(plots, 0o755); err != nil {
			return fmt.Errorf("the directory for plots: %w", err)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	all, err := runAll(b, chosen, stderr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s %s/%s, GOMAXPROCS=%d of %d CPUs\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, cores, runtime.NumCPU())
	for _, r := range all.reports {
		writeReport(stdout, r)
	}
	writeNotes(stdout, all.notes)
	writeChecks(stdout, all.checks)
	if plots == "" {
		return nil
	}
	return writePlots(plots, all.reports, stdout)
}

func runAll(b *bench, chosen []scenario, stderr io.Writer) (result, error) {
	var all result
	p := newProgress(stderr, len(chosen))
	b.step = p.step
	for _, s := range chosen {
		p.scenario(s.name)
		r, err := s.run(b)
		if err != nil {
			return result{}, fmt.Errorf("%s: %w", s.name, err)
		}
		all.reports = append(all.reports, r.reports...)
		all.checks = append(all.checks, r.checks...)
		all.notes = append(all.notes, r.notes...)
	}
	p.done()
	return all, nil
}
