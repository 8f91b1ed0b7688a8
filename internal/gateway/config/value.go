package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

// units of sizes, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// size reads a number of bytes.
func size[T int | int64](to *T, least, most int64) func(yamlValue) {
	want := fmt.Sprintf("a size from %s to %s: a number of bytes, or one with KiB, MiB or GiB", sizeText(least), sizeText(most))
	return strictyaml.Parsed(to, want, func(text string) (T, bool) {
		n, ok := sizeOf(text)
		return T(n), ok && least <= n && n <= most
	})
}

func sizeOf(text string) (int64, bool) {
	for _, u := range units {
		number, found := strings.CutSuffix(text, u.name)
		if !found {
			continue
		}
		n, ok := strictyaml.WholeNumber(number)
		return n * u.bytes, ok && n >= 0 && n <= maxSize
	}
	return 0, false
}

const maxSize = 1 << 30 // the largest number of any unit, so that no product overflows

// sizeText writes a size in its largest whole unit.
func sizeText(n int64) string {
	for _, u := range units {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return "0"
}

// filePath reads a path, in which ~ is the home directory.
func filePath(to *string) func(yamlValue) {
	return func(p yamlValue) {
		if text, ok := p.Text("the path of a file"); ok {
			*to = home(p, text)
		}
	}
}

// home returns a path with the home directory in place of ~, or records a fault and returns "".
func home(p yamlValue, path string) string {
	if !strings.HasPrefix(path, "~") {
		return path
	}
	rest := path[1:]
	if rest != "" && rest[0] != '/' {
		p.Fault("a path that begins with ~ and a name: it must begin with ~/, which is the home directory")
		return ""
	}
	home, err := os.UserHomeDir()
	if err != nil {
		p.Fault("there is no home directory for the ~ in it: the path must be written out")
		return ""
	}
	return filepath.Join(home, rest)
}
