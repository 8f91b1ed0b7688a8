package strictyaml

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/message"
)

// Parsed returns the reader of a text that parse accepts. want says in the fault for other texts what
// the text must be.
func Parsed[T any](to *T, want string, parse func(string) (T, bool)) func(Value) {
	return func(v Value) {
		text, ok := v.Text(want)
		if !ok {
			return
		}
		value, ok := parse(text)
		if !ok {
			v.Fault("%s: it must be %s", message.Quote(text), want)
			return
		}
		*to = value
	}
}

// Any returns the reader of any text.
func Any(to *string, want string) func(Value) {
	return Parsed(to, want, func(text string) (string, bool) { return text, true })
}

// Count returns the reader of a whole number, which may have underscores between its digits.
func Count(to *int, least, most int64) func(Value) {
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	return Parsed(to, want, func(text string) (int, bool) {
		n, ok := WholeNumber(text)
		return int(n), ok && least <= n && n <= most
	})
}

// WholeNumber parses a number, which must have neither a plus sign nor leading zeros. It may have
// underscores between its digits.
func WholeNumber(text string) (int64, bool) {
	digits := strings.TrimPrefix(text, "-")
	if strings.HasPrefix(digits, "_") || strings.HasSuffix(digits, "_") || strings.Contains(digits, "__") {
		return 0, false
	}
	plain := strings.ReplaceAll(text, "_", "")
	n, err := strconv.ParseInt(plain, 10, strconv.IntSize)
	return n, err == nil && plain == strconv.FormatInt(n, 10)
}

// Flag returns the reader of true or false.
func Flag(to *bool) func(Value) {
	return Parsed(to, "true or false", func(text string) (bool, bool) { return text == "true", text == "true" || text == "false" })
}

// OneOf returns the reader of one of some words.
func OneOf[T ~string](to *T, words ...T) func(Value) {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	want := strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
	return Parsed(to, want, func(text string) (T, bool) { return T(text), slices.Contains(all, text) })
}

// Duration returns the reader of a duration as Go writes it.
func Duration(to *time.Duration, least, most time.Duration) func(Value) {
	want := fmt.Sprintf("a duration from %s to %s, such as 90s or 1h30m", Short(least), Short(most))
	return Parsed(to, want, func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && least <= d && d <= most
	})
}

// Short returns a duration as text, without the zeros at its end.
func Short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
