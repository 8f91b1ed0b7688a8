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

// These bound the time and the memory that one file can take.
const (
	maxBytes = 4 << 20
	maxParts = 400_000
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
	r := &reader{Document: strictyaml.Parse(name, string(text), maxBytes, maxParts), name: name, flags: map[string]yamlValue{}, projects: map[string]entry{}}
	c := defaults()
	c.read(r)
	c.Blank = name != "" && r.Blank()
	if c.Blank {
		r.at().Warn("it is empty: every setting has its default")
	}
	r.override("listen", "--listen", o.Listen, address(&c.Listen))
	r.override("admin.listen", "--admin", o.Admin, adminAddress(&c.Admin.Listen))
	r.override("state", "--state", o.State, storage(&c.State))
	if len(r.faults()) == 0 {
		c.Prices = c.Prices.WithProviders(c.kinds())
		c.check(r)
	}
	if err := errors.Join(r.faults()...); err != nil {
		return nil, err
	}
	for _, d := range append([]*strictyaml.Document{r.Document}, r.included...) {
		for _, w := range d.Warnings() {
			c.Warnings = append(c.Warnings, w.String())
		}
	}
	return c, nil
}

type yamlValue = strictyaml.Value

var (
	field = strictyaml.NewField
	short = strictyaml.Short
)

// A reader knows where each value stands, in a file or on the command line.
type reader struct {
	*strictyaml.Document
	name     string                 // of the file
	included []*strictyaml.Document // the files that the file includes
	flags    map[string]yamlValue   // the values on the command line, by the path of the field that each wins over
	projects map[string]entry       // the projects of all files, by their paths
}

// maxFaults is how many faults of all files are reported.
const maxFaults = 100

// faults returns what is wrong with the files, in the order of their lines.
func (r *reader) faults() (all []error) {
	for _, d := range append([]*strictyaml.Document{r.Document}, r.included...) {
		for _, f := range d.Faults() {
			all = append(all, Fault(f))
		}
	}
	return all[:min(len(all), maxFaults)]
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
