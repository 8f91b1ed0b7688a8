package statefile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/internal/state"
)

// format returns the text of a file, with models sorted by name and times in UTC. It returns an error
// for content that parse would not accept.
func format(f File) ([]byte, error) {
	w := &writer{}
	writeModels(w, "quotas:", f.Quotas, w.quota)
	writeModels(w, "state:", f.State, w.usage)
	if w.err == nil && len(w.text) > maxFile {
		return nil, fmt.Errorf("%d bytes: it must have %d at most", len(w.text), maxFile)
	}
	return w.text, w.err
}

// A writer writes a file from top to bottom.
type writer struct {
	text  []byte
	model string // the model that is being written
	err   error  // the first error
}

func writeModels[T any](w *writer, key string, models map[string]T, write func(T)) {
	if len(models) == 0 {
		w.line(key, " {}")
		return
	}
	w.line(key)
	for _, w.model = range slices.Sorted(maps.Keys(models)) {
		if err := modelname.Check(w.model); err != nil && w.err == nil {
			w.err = fmt.Errorf("%s", message.Plain(err))
		}
		w.line("  ", quote(w.model), ":")
		write(models[w.model])
	}
}

func (w *writer) quota(q state.Quota) {
	w.check(q.Validate())
	for i, m := range q.Maxima() {
		if always := i < 3; always || *m.Value != 0 { // files of the first version had the first three
			w.count("    "+m.Name+": ", *m.Value)
		}
	}
	if q.DayResetsAt != "" {
		w.line("    day_resets_at: ", quote(strings.Join(strings.Fields(q.DayResetsAt), " ")))
	}
	if q.Auto {
		w.line("    auto: true")
	}
	if q.Margin != 0 {
		w.line("    margin: ", q.Margin.String())
	}
	if q.Reserve != 0 {
		w.line("    reserve: ", q.Reserve.String())
	}
	if q.ReserveTokens != "" {
		w.line("    reserve_tokens: ", string(q.ReserveTokens))
	}
	if q.OnOverrun != "" {
		w.line("    on_overrun: ", string(q.OnOverrun))
	}
	if q.Pace != "" {
		w.line("    pace: ", q.Pace)
	}
	if q.PaceBurst != 0 {
		w.line("    burst: ", q.PaceBurst.String())
	}
	if !q.Count.IsZero() {
		w.line("    count:")
		for _, c := range q.Weights() {
			if c.Value.IsSet() {
				w.line("      ", c.Name, ": ", c.Value.String())
			}
		}
	}
}

func (w *writer) usage(u state.Usage) {
	writeList(w, "    requests:", u.Requests, func(t time.Time) { w.time("      - ", t) })
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

func (w *writer) entries(key string, entries []state.Entry) {
	writeList(w, key, entries, func(e state.Entry) {
		w.time("      - time: ", e.Time)
		w.count("        count: ", e.Count)
	})
}

func writeList[T any](w *writer, key string, list []T, write func(T)) {
	if len(list) == 0 {
		w.line(key, " []")
		return
	}
	w.line(key)
	for _, item := range list {
		write(item)
	}
}

func (w *writer) time(key string, t time.Time) {
	w.check(state.CheckTime(t))
	w.line(key, t.UTC().Format(time.RFC3339Nano))
}

func (w *writer) count(key string, n int) {
	if n < 0 || n > state.MaxCount {
		w.check(fmt.Errorf("a count of %d: it must be from 0 to %d", n, state.MaxCount))
	}
	w.line(key, strconv.Itoa(n))
}

func (w *writer) line(parts ...string) {
	for _, part := range parts {
		w.text = append(w.text, part...)
	}
	w.text = append(w.text, '\n')
}

func (w *writer) check(err error) {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("model %q: %s", w.model, message.Plain(err))
	}
}

// quote returns a text in quotes, or as it is if YAML reads it as the same text without quotes. YAML
// reads all escapes that Go writes.
func quote(s string) string {
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
	return s != "" && s[len(s)-1] != ':' && !slices.Contains(notText, strings.ToLower(s))
}

// notText are the words that YAML takes for something else than a text if they have no quotes.
var notText = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
