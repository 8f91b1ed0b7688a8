// Command fair shows how a model's quota is shared among clients: by this module, by first come first
// served, by deficit round robin, by a fixed split, by LiteLLM's rule and by the virtual token
// counter. Time is simulated; that of -gateways is real. See ../README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
)

// Fake time is for tests alone, so the program runs as one. testing.Main is kept for programs that do so.
func main() {
	testing.Init()
	flag.CommandLine.Parse(nil) // what os.Args holds is for Main, and not for package testing
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{
		{Name: "fair", F: func(t *testing.T) { os.Exit(Main(t, os.Args[1:], os.Stdout, os.Stderr)) }},
	}, nil, nil)
}

const nameOurs = "ours"

// rules are the contestants beside ours, in the order in which they are printed.
var rules = []struct {
	name string
	make func(*load) rule
}{
	{"first come", newFCFS},
	{"round robin", newDRR},
	{"fixed split", newSplit},
	{"LiteLLM", newLiteLLM},
	{"VTC", newVTC},
}

// names are those of all contestants.
func names() []string {
	all := []string{nameOurs}
	for _, r := range rules {
		all = append(all, r.name)
	}
	return all
}

// compete returns what each contestant makes of a load. It must run in a bubble.
func compete(l *load) (map[string]*service, error) {
	calls, err := ours(l)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.name, err)
	}
	got := map[string]*service{nameOurs: newService(l, calls)}
	for _, r := range rules {
		got[r.name] = newService(l, simulate(l, r.make(l)))
	}
	return got, nil
}

// Main is the program. It returns the exit status: 0, 1 for a failure, 2 for a misuse.
func Main(t *testing.T, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("fair", flag.ContinueOnError)
	fs.SetOutput(stderr)
	pattern := fs.String("run", ".", "the loads whose names match this `regexp`")
	plots := fs.String("plots", "../docs/plots", "write SVG plots to this `directory`; empty: none")
	markdown := fs.Bool("markdown", false, "print Markdown")
	windows := fs.Bool("windows", false, "print the shares of each window, too")
	gateways := fs.String("gateways", "", "measure fleets of so many gateways instead, such as `2,4,8`")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "fair: unexpected argument %q: all settings are flags, see -h\n", fs.Arg(0))
		return 2
	}
	if *gateways != "" {
		return showFleets(t.Context(), *gateways, *markdown, stdout, stderr)
	}
	run, err := regexp.Compile(*pattern)
	if err != nil {
		fmt.Fprintf(stderr, "fair: -run: %v\n", err)
		return 2
	}
	chosen := slices.DeleteFunc(loads(), func(l load) bool { return !run.MatchString(l.name) })
	if len(chosen) == 0 {
		fmt.Fprintf(stderr, "fair: -run %q matches no load\n", run)
		return 2
	}
	for _, l := range chosen {
		if err := show(t, &l, *plots, *markdown, *windows, stdout); err != nil {
			fmt.Fprintf(stderr, "fair: %v\n", err)
			return 1
		}
	}
	return 0
}

// show prints and draws what the contestants make of a load.
func show(t *testing.T, l *load, plots string, markdown, windows bool, stdout io.Writer) (err error) {
	var got map[string]*service
	synctest.Test(t, func(*testing.T) { got, err = compete(l) })
	if err != nil {
		return err
	}
	tables := []table{figuresOf(l, got)}
	if windows {
		tables = append(tables, windowsOf(l, got))
	}
	for _, each := range tables {
		each.print(stdout, markdown)
	}
	if plots == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(plots, "fair-"+l.name+".svg"), svg(l, got), 0o644)
}
