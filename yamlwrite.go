package ratelimit

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// formatYAML returns the text of a file, models sorted by name and times in UTC.
func formatYAML(s saved) ([]byte, error) {
	w := &yamlWriter{}
	writeModels(w, "quotas:", s.Quotas, w.quota)
	writeModels(w, "state:", s.State, w.usage)
	if w.err == nil && len(w.text) > maxFile {
		return nil, fmt.Errorf("%d bytes: it must have %d at most", len(w.text), maxFile)
	}
	return w.text, w.err
}

// A yamlWriter writes a file from top to bottom and keeps the first error.
type yamlWriter struct {
	text  []byte
	model string // the one that is being written
	err   error
}

func writeModels[T any](w *yamlWriter, key string, models map[string]T, write func(T)) {
	if len(models) == 0 {
		w.line(key, " {}")
		return
	}
	w.line(key)
	for _, w.model = range slices.Sorted(maps.Keys(models)) {
		if err := checkName(w.model); err != nil && w.err == nil {
			w.err = bare{err}
		}
		w.line("  ", quoteYAML(w.model), ":")
		write(models[w.model])
	}
}

func (w *yamlWriter) quota(q ModelQuota) {
	w.check(q.Validate())
	w.count("    max_rpm: ", q.MaxRPM)
	w.count("    max_tpm: ", q.MaxTPM)
	w.count("    max_rpd: ", q.MaxRPD)
	if q.MaxInputTPM != 0 {
		w.count("    max_input_tpm: ", q.MaxInputTPM)
	}
	if q.MaxOutputTPM != 0 {
		w.count("    max_output_tpm: ", q.MaxOutputTPM)
	}
	if q.MaxTPD != 0 {
		w.count("    max_tpd: ", q.MaxTPD)
	}
	if q.MaxConcurrent != 0 {
		w.count("    max_concurrent: ", q.MaxConcurrent)
	}
	if q.DayResetsAt != "" {
		w.line("    day_resets_at: ", quoteYAML(q.DayResetsAt))
	}
	if q.Auto {
		w.line("    auto: true")
	}
	if q.Margin != 0 {
		w.line("    margin: ", q.Margin.String())
	}
}

func (w *yamlWriter) usage(u UsageStats) {
	if len(u.Requests) == 0 {
		w.line("    requests: []")
	} else {
		w.line("    requests:")
	}
	for _, t := range u.Requests {
		w.time("      - ", t)
	}
	w.entries("    tokens:", u.Tokens)
	w.time("    day_start: ", u.DayStart)
	w.count("    day_count: ", u.DayCount)
	if len(u.InputTokens) > 0 {
		w.entries("    input_tokens:", u.InputTokens)
	}
	if len(u.OutputTokens) > 0 {
		w.entries("    output_tokens:", u.OutputTokens)
	}
	if u.DayTokens != nil {
		w.line("    day_tokens:")
		w.time("      time: ", u.DayTokens.Time)
		w.count("      count: ", u.DayTokens.Count)
	}
}

func (w *yamlWriter) entries(key string, entries []TokenEntry) {
	if len(entries) == 0 {
		w.line(key, " []")
		return
	}
	w.line(key)
	for _, e := range entries {
		w.time("      - time: ", e.Time)
		w.count("        count: ", e.Count)
	}
}

func (w *yamlWriter) time(key string, t time.Time) {
	w.check(checkTime(t))
	w.text = append(w.text, key...)
	w.text = t.UTC().AppendFormat(w.text, time.RFC3339Nano)
	w.text = append(w.text, '\n')
}

func (w *yamlWriter) count(key string, n int) {
	w.check(checkCount(n))
	w.text = append(w.text, key...)
	w.text = strconv.AppendInt(w.text, int64(n), 10)
	w.text = append(w.text, '\n')
}

func (w *yamlWriter) line(parts ...string) {
	for _, part := range parts {
		w.text = append(w.text, part...)
	}
	w.text = append(w.text, '\n')
}

func (w *yamlWriter) check(err error) {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("model %q: %w", w.model, bare{err})
	}
}

// What checkName, Validate, checkCount and checkTime refuse is neither read nor
// written.

// maxCount is as far as usage is counted.
const maxCount = min(1<<62, math.MaxInt)

func checkCount(n int) error {
	if n < 0 || n > maxCount {
		return fmt.Errorf("a count of %d: it must be from 0 to %d", n, maxCount)
	}
	return nil
}

// checkTime refuses what RFC 3339 cannot say.
func checkTime(t time.Time) error {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("a time in the year %d: it must be from 0 to 9999", year)
	}
	return nil
}

// quoteYAML returns s in quotes, or as it is where that reads as the same text.
// What Go escapes, YAML reads.
func quoteYAML(s string) string {
	if isPlain(s) {
		return s
	}
	return strconv.Quote(s)
}

func isPlain(s string) bool {
	for i, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789-_./:", rune(c))) {
			return false
		}
	}
	return s != "" && s[len(s)-1] != ':' && !slices.Contains(yamlWords, strings.ToLower(s))
}

// yamlWords are plain texts that are not text.
var yamlWords = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
