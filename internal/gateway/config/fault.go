package config

import "dappco.re/go/core/go-ratelimit/internal/strictyaml"

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	File         string // empty: there is no file
	Line, Column int    // from 1; 0: the fault is not in the file, but on the command line
	Path         string // the path of the field, such as projects.search.weight
	Problem      string // what is wrong, and what is allowed
}

func (f Fault) Error() string { return "ratelimit: " + strictyaml.Fault(f).String() }
