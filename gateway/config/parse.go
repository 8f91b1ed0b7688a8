package config

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Overrides is what the command line says, which wins over the file. What is empty
// leaves the file's.
type Overrides struct {
	Listen string // --listen
	Admin  string // --admin; "off": none
	State  string // --state
}

// Load reads the file at a path, or the defaults where that is empty, with what the
// command line says in place of what the file does.
func Load(path string, o Overrides) (*Config, error) {
	if path == "" {
		return read("", nil, o)
	}
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: the configuration cannot be read: %w", err)
	}
	return read(path, text, o)
}

// readFile reads a file, and a byte more than it may have at most.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// Parse reads a configuration; name is that of the file, for errors. The error is
// [Errors]: each says what is wrong, on which line, and what is allowed.
func Parse(name string, text []byte) (*Config, error) { return read(name, text, Overrides{}) }

func read(name string, text []byte, o Overrides) (*Config, error) {
	r := &reader{file: name, said: map[string]place{}}
	c := Default()
	if node := r.tree(text); node != nil {
		c.read(place{r: r, node: node, line: 1, column: 1})
	}
	if c.Blank = name != "" && len(r.said) == 0; c.Blank {
		r.at("").warn("it says nothing: all is as without a file")
	}
	r.override("listen", "--listen", o.Listen, address(&c.Listen))
	r.override("admin.listen", "--admin", o.Admin, adminAddress(&c.Admin.Listen))
	r.override("state", "--state", o.State, state(&c.State))
	if len(r.faults) == 0 {
		c.check(r)
	}
	if len(r.faults) > 0 {
		return nil, Errors(byLine(r.faults))
	}
	for _, w := range byLine(r.warnings) {
		c.Warnings = append(c.Warnings, w.text())
	}
	return c, nil
}

func byLine(faults []Fault) []Fault {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return faults
}

// override reads what the command line says in place of the file's field.
func (r *reader) override(path, flag, value string, read func(place)) {
	if value == "" {
		return
	}
	p := place{r: r, path: flag, node: ast.String(token.String(value, value, &token.Position{}))}
	r.said[path] = p
	read(p)
}
