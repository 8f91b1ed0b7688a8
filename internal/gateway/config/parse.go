package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

// Overrides are the values on the command line, which win over those in the file. An empty one
// leaves the file's value.
type Overrides struct {
	Listen string // --listen
	Admin  string // --admin; "off": none
	State  string // --state
}

// These bound the time and the memory that a file can take.
const (
	maxBytes = 1 << 20
	maxParts = 100_000
)

// Load reads the file at a path, or the defaults where the path is empty, with the values of
// the command line in place of the file's.
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

// readFile reads a file, up to a byte more than it may have.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}

// Parse reads a configuration; name is that of the file, for errors. The error joins everything
// that is wrong, each a [Fault], in the order of the lines.
func Parse(name string, text []byte) (*Config, error) { return read(name, text, Overrides{}) }

func read(name string, text []byte, o Overrides) (*Config, error) {
	r := &reader{strictyaml.Parse(name, string(text), maxBytes, maxParts), map[string]yamlValue{}}
	c := defaults()
	c.read(r.Root())
	c.Blank = name != "" && r.Blank()
	if c.Blank {
		r.at().Warn("it is empty: every setting has its default")
	}
	r.override("listen", "--listen", o.Listen, address(&c.Listen))
	r.override("admin.listen", "--admin", o.Admin, adminAddress(&c.Admin.Listen))
	r.override("state", "--state", o.State, storage(&c.State))
	if len(r.Faults()) == 0 {
		c.Prices = c.Prices.WithProviders(c.kinds())
		c.check(r)
	}
	var faults []error
	for _, f := range r.Faults() {
		faults = append(faults, Fault(f))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	for _, w := range r.Warnings() {
		c.Warnings = append(c.Warnings, w.String())
	}
	return c, nil
}

type yamlValue = strictyaml.Value

var (
	field = strictyaml.NewField
	short = strictyaml.Short
)

// A reader knows where each value stands, in the file or on the command line.
type reader struct {
	*strictyaml.Document
	flags map[string]yamlValue // the values on the command line, by the path of the field that each wins over
}

// override reads a value of the command line in place of the file's.
func (r *reader) override(path, flag, value string, read func(yamlValue)) {
	if value == "" {
		return
	}
	r.flags[path] = r.Flag(flag, value)
	read(r.flags[path])
	if names := strings.Split(path, "."); r.Root().Has(names[0]) && !r.Root().At(names...).Missing() {
		r.flags[path].Warn("%s in the file does not count, since the flag wins", path)
	}
}

// at returns the value of a field, from the command line or the file.
func (r *reader) at(names ...string) yamlValue {
	if p, ok := r.flags[strings.Join(names, ".")]; ok {
		return p
	}
	return r.Root().At(names...)
}
