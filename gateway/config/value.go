package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// count reads a whole number, which may have underscores between its digits.
func count(to *int, least, most int64) func(place) {
	return func(p place) {
		want := fmt.Sprintf("a whole number from %d to %d", least, most)
		text, ok := p.text(want)
		if !ok {
			return
		}
		n, ok := wholeNumber(text)
		if !ok || n < least || n > most {
			p.fault("%s: it must be %s", shown(text), want)
			return
		}
		*to = int(n)
	}
}

// wholeNumber reads a number without a plus sign and leading zeros.
func wholeNumber(text string) (int64, bool) {
	digits := strings.TrimPrefix(text, "-")
	if strings.HasPrefix(digits, "_") || strings.HasSuffix(digits, "_") || strings.Contains(digits, "__") {
		return 0, false
	}
	plain := strings.ReplaceAll(text, "_", "")
	n, err := strconv.ParseInt(plain, 10, strconv.IntSize)
	return n, err == nil && plain == strconv.FormatInt(n, 10)
}

// flag reads true or false.
func flag(to *bool) func(place) {
	return func(p place) {
		word := strconv.FormatBool(*to)
		oneOf(&word, "true", "false")(p)
		*to = word == "true"
	}
}

// oneOf reads a word.
func oneOf[T ~string](to *T, words ...T) func(place) {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	want := strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
	return func(p place) {
		text, ok := p.text(want)
		switch {
		case !ok:
		case !slices.Contains(all, text):
			p.fault("%s: it must be %s", shown(text), want)
		default:
			*to = T(text)
		}
	}
}

// duration reads one as Go writes it.
func duration(to *time.Duration, least, most time.Duration) func(place) {
	return func(p place) {
		want := fmt.Sprintf("a duration from %s to %s, such as 90s or 1h30m", short(least), short(most))
		text, ok := p.text(want)
		if !ok {
			return
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < least || d > most {
			p.fault("%s: it must be %s", shown(text), want)
			return
		}
		*to = d
	}
}

// short is a duration without the zeros at its end.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// units of sizes, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// size reads a number of bytes.
func size[T int | int64](to *T, least, most int64) func(place) {
	return func(p place) {
		want := fmt.Sprintf("a size from %s to %s: a number of bytes, or one with KiB, MiB or GiB", sizeText(least), sizeText(most))
		text, ok := p.text(want)
		if !ok {
			return
		}
		n, ok := sizeOf(text)
		if !ok || n < least || n > most {
			p.fault("%s: it must be %s", shown(text), want)
			return
		}
		*to = T(n)
	}
}

func sizeOf(text string) (int64, bool) {
	for _, u := range units {
		number, found := strings.CutSuffix(text, u.name)
		if !found {
			continue
		}
		n, ok := wholeNumber(number)
		return n * u.bytes, ok && n >= 0 && n <= maxSize
	}
	return 0, false
}

const maxSize = 1 << 30 // of any unit, so that no product overflows

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
func filePath(to *string) func(place) {
	return func(p place) {
		if text, ok := p.text("the path of a file"); ok {
			if path, ok := p.home(text); ok {
				*to = path
			}
		}
	}
}

func (p place) home(path string) (string, bool) {
	if !strings.HasPrefix(path, "~") {
		return path, true
	}
	rest := path[1:]
	if rest != "" && rest[0] != '/' {
		p.fault("a path that begins with ~ and a name: it must begin with ~/, which is the home directory")
		return "", false
	}
	home, err := os.UserHomeDir()
	if err != nil {
		p.fault("there is no home directory for the ~ in it: the path must be written out")
		return "", false
	}
	return filepath.Join(home, rest), true
}

// text reads any text.
func text(to *string, want string) func(place) {
	return func(p place) {
		if text, ok := p.text(want); ok {
			*to = text
		}
	}
}
