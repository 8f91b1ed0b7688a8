package ratelimit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/token"
)

// parseYAML reads the text of a file; name is for errors. On an error it
// returns nothing of it.
//
// It asks for what may stand in each place, and takes the file a line at a time.
// So nothing nests deeper than the format, time and memory grow with the size of
// the file alone, and whatever the format lacks, such as anchors, tags, text of
// several lines or a second document, is an error where it stands.
func parseYAML(name string, data []byte) (saved, error) {
	r := &yamlReader{name: name, rest: strings.TrimPrefix(string(data), "\ufeff")}
	s, err := r.saved()
	if err != nil {
		return saved{}, err
	}
	return s, nil
}

func (r *yamlReader) saved() (s saved, err error) {
	in := yamlPlace{}
	if t := r.peek(); t.Type == token.DocumentHeaderType {
		in.line = t.Position.Line
		r.next()
	}
	if !r.null(in) {
		err = r.fields(in, []yamlField{
			{name: "quotas", read: func(in yamlPlace) (err error) { s.Quotas, err = readModels(r, in, r.quota); return err }},
			{name: "state", read: func(in yamlPlace) (err error) { s.State, err = readModels(r, in, r.usage); return err }},
		})
	}
	if t := r.peek(); err == nil && t.Type != endType {
		err = r.unexpected(t, "the end of the file")
	}
	return s, err
}

// quota does not take null for a quota, nor for a field of it: to forget a
// number must not lift a limit.
func (r *yamlReader) quota(in yamlPlace) (q ModelQuota, err error) {
	at := in.key
	err = r.fields(in, []yamlField{
		{name: "max_rpm", read: r.count(&q.MaxRPM, maxQuota)},
		{name: "max_tpm", read: r.count(&q.MaxTPM, maxQuota)},
		{name: "max_rpd", read: r.count(&q.MaxRPD, maxQuota)},
		{name: "max_input_tpm", read: r.count(&q.MaxInputTPM, maxQuota)},
		{name: "max_output_tpm", read: r.count(&q.MaxOutputTPM, maxQuota)},
		{name: "max_tpd", read: r.count(&q.MaxTPD, maxQuota)},
		{name: "max_concurrent", read: r.count(&q.MaxConcurrent, maxQuota)},
		{name: "day_resets_at", read: func(in yamlPlace) (err error) {
			at, err = r.scalar(in, "a time of day and a time zone")
			if err == nil {
				q.DayResetsAt = at.Value
			}
			return err
		}},
		{name: "auto", read: func(in yamlPlace) error {
			t, err := r.scalar(in, "true or false")
			if err == nil && t.Value != "true" && t.Value != "false" {
				err = r.unexpected(t, "true or false")
			}
			q.Auto = err == nil && t.Value == "true"
			return err
		}},
		{name: "margin", read: r.duration(&q.Margin)},
	})
	if err != nil {
		return q, err
	}
	if err := q.Validate(); err != nil {
		return q, r.errorf(at, "%w", bare{err})
	}
	return q, nil
}

// usage wants every field that was ever written, so that a file that was cut
// short does not pass for a whole one.
func (r *yamlReader) usage(in yamlPlace) (u UsageStats, err error) {
	if r.peek().Type == token.NullType && r.null(in) {
		return u, nil
	}
	err = r.fields(in, []yamlField{
		{name: "requests", required: true, read: func(in yamlPlace) (err error) { u.Requests, err = readList(r, in, r.time); return err }},
		{name: "tokens", required: true, read: r.entries(&u.Tokens)},
		{name: "day_start", required: true, read: func(in yamlPlace) (err error) { u.DayStart, err = r.time(in); return err }},
		{name: "day_count", required: true, read: r.count(&u.DayCount, maxCount)},
		{name: "input_tokens", read: r.entries(&u.InputTokens)},
		{name: "output_tokens", read: r.entries(&u.OutputTokens)},
		{name: "day_tokens", read: func(in yamlPlace) error {
			if r.null(in) {
				return nil
			}
			e, err := r.entry(in)
			u.DayTokens = &e
			return err
		}},
	})
	return u, err
}

func (r *yamlReader) entries(to *[]TokenEntry) func(yamlPlace) error {
	return func(in yamlPlace) (err error) {
		*to, err = readList(r, in, r.entry)
		return err
	}
}

func (r *yamlReader) entry(in yamlPlace) (e TokenEntry, err error) {
	err = r.fields(in, []yamlField{
		{name: "time", required: true, read: func(in yamlPlace) (err error) { e.Time, err = r.time(in); return err }},
		{name: "count", required: true, read: r.count(&e.Count, maxCount)},
	})
	return e, err
}

// count reads a number without sign, leading zeros and the like.
func (r *yamlReader) count(to *int, most int64) func(yamlPlace) error {
	return func(in yamlPlace) error {
		want := fmt.Sprintf("a whole number from 0 to %d", most)
		t, err := r.scalar(in, want)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(t.Value)
		if err != nil || t.Type != token.IntegerType || t.Value != strconv.Itoa(n) || n < 0 || int64(n) > most {
			return r.errorf(t, "%s of %q: it must be %s", in.key.Value, t.Value, want)
		}
		*to = n
		return nil
	}
}

// duration reads one as Go writes it.
func (r *yamlReader) duration(to *time.Duration) func(yamlPlace) error {
	return func(in yamlPlace) error {
		const want = "a duration such as 2s or 500ms"
		t, err := r.scalar(in, want)
		if err != nil {
			return err
		}
		if *to, err = time.ParseDuration(t.Value); err != nil {
			return r.unexpected(t, want)
		}
		return nil
	}
}

func (r *yamlReader) time(in yamlPlace) (time.Time, error) {
	const want = "a time such as 2026-02-20T14:32:01.5Z"
	t, err := r.scalar(in, want)
	if err != nil {
		return time.Time{}, err
	}
	var at time.Time
	if at.UnmarshalText([]byte(t.Value)) != nil || checkTime(at) != nil {
		return time.Time{}, r.errorf(t, "%q: it must be %s", t.Value, want)
	}
	return at.UTC(), nil
}

// readModels reads a mapping by model.
func readModels[T any](r *yamlReader, in yamlPlace, read func(yamlPlace) (T, error)) (map[string]T, error) {
	if r.null(in) {
		return nil, nil
	}
	models := map[string]T{}
	err := r.mapping(in, func(in yamlPlace) (err error) {
		model := in.key.Value
		if err := checkName(model); err != nil {
			return r.errorf(in.key, "%w", bare{err})
		}
		if _, twice := models[model]; twice {
			return r.errorf(in.key, "model %q stands here twice", model)
		}
		models[model], err = read(in)
		return err
	})
	return models, err
}

// A yamlField is one that a mapping may have.
type yamlField struct {
	name     string
	required bool
	read     func(yamlPlace) error
}

// fields reads a mapping whose keys are known.
func (r *yamlReader) fields(in yamlPlace, fields []yamlField) error {
	var seen uint // a bit for each of fields
	err := r.mapping(in, func(in yamlPlace) error {
		name := in.key.Value
		i := slices.IndexFunc(fields, func(f yamlField) bool { return f.name == name })
		if i < 0 {
			return r.errorf(in.key, "unknown field %q: it must be one of %s", name, namesOf(fields))
		}
		if seen&(1<<i) != 0 {
			return r.errorf(in.key, "field %q stands here twice", name)
		}
		seen |= 1 << i
		return fields[i].read(in)
	})
	if err != nil {
		return err
	}
	for i, f := range fields {
		if f.required && seen&(1<<i) == 0 {
			return r.errorf(in.key, "%q lacks %s: the file may have been cut short", in.key.Value, f.name)
		}
	}
	return nil
}

func namesOf(fields []yamlField) string {
	var all []string
	for _, f := range fields {
		all = append(all, f.name)
	}
	return strings.Join(all, ", ")
}
