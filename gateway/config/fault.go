package config

import (
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	File         string // empty: there is none
	Line, Column int    // from 1; 0: it is not in the file, but on the command line
	Path         string // of the field, such as projects.search.weight
	Problem      string // what is wrong, and what is allowed
}

func (f Fault) Error() string { return "ratelimit: " + strictyaml.Fault(f).String() }

// Errors is everything that is wrong with a configuration, in the order of its lines.
type Errors []Fault

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each of them.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, f := range e {
		errs[i] = f
	}
	return errs
}
