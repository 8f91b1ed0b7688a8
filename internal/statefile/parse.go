package statefile

import (
	"errors"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

type place = strictyaml.Place

var field = strictyaml.NewField

// parse reads the text of a file. The error is the first fault, with the name of the file.
func parse(name, text string) (f File, err error) {
	doc := strictyaml.Parse(name, text, strictyaml.Form{MaxBytes: maxFile, Generated: true})
	doc.Root().Fields(
		field("quotas", func(p place) { f.Quotas = models(p, quota) }),
		field("state", func(p place) { f.State = models(p, usage) }),
	)
	if faults := doc.Faults(); len(faults) > 0 {
		return File{}, errors.New("ratelimit: " + faults[0].String())
	}
	return f, nil
}

// models reads a mapping from models to values. Null is no mapping, which differs from an empty one.
func models[T any](p place, read func(place) T) map[string]T {
	if p.Null() {
		return nil
	}
	all := map[string]T{}
	p.Entries(func(model string, key, value place) {
		if err := modelname.Check(model); err != nil {
			key.Fault("%s", message.Plain(err))
		}
		all[model] = read(value)
	})
	return all
}

// quota does not take null for a quota, nor for a field of it: to forget a number must not
// lift a limit.
func quota(p place) (q state.Quota) {
	if p.Null() {
		p.Fault("it has no value: it must be a mapping; {} is without limits")
	}
	p.Fields(QuotaFields(&q)...)
	if err := q.Validate(); err != nil && !p.Faulty() {
		p.At("day_resets_at").Fault("%s", message.Plain(err))
	}
	return q
}

// QuotaFields are the fields of a quota, here and in the gateway's configuration.
func QuotaFields(q *state.Quota) (fields []strictyaml.Field) {
	for _, m := range q.Maxima() {
		fields = append(fields, field(m.Name, strictyaml.Count(m.Value, 0, state.MaxQuota)))
	}
	return append(fields,
		field("day_resets_at", strictyaml.Any(&q.DayResetsAt, "a time of day and a time zone, such as 00:00 America/Los_Angeles")),
		field("auto", strictyaml.Flag(&q.Auto)),
		field("margin", strictyaml.Duration(&q.Margin, 0, state.MaxMargin)),
	)
}

// usage requires every field that was written from the first version on, so that a file that was
// cut short does not pass for a whole one. An explicit null is no usage.
func usage(p place) (u state.Usage) {
	if p.Null() && !p.Missing() {
		return u
	}
	p.Fields(
		field("requests", each(&u.Requests, moment)),
		field("tokens", each(&u.Tokens, entry)),
		field("day_start", moment(&u.DayStart)),
		field("day_count", strictyaml.Count(&u.DayCount, 0, state.MaxCount)),
		field("input_tokens", each(&u.InputTokens, entry)),
		field("output_tokens", each(&u.OutputTokens, entry)),
		field("day_tokens", func(p place) {
			if !p.Null() {
				u.DayTokens = new(state.Entry)
				entry(u.DayTokens)(p)
			}
		}),
	)
	need(p, "requests", "tokens", "day_start", "day_count")
	return u
}

// need finds required fields that a mapping lacks, unless the mapping has another fault.
func need(p place, names ...string) {
	for _, name := range names {
		if !p.Has(name) && !p.Faulty() {
			p.Fault("it lacks %s: the file may have been cut short", name)
		}
	}
}

// each returns the reader of a list. Null is an empty list.
func each[T any](to *[]T, read func(*T) func(place)) func(place) {
	return func(p place) {
		if p.Null() {
			return
		}
		var item T
		readItem := read(&item)
		p.Items(func(p place) {
			readItem(p)
			*to = append(*to, item)
		})
	}
}

func entry(to *state.Entry) func(place) {
	fields := []strictyaml.Field{field("time", moment(&to.Time)), field("count", strictyaml.Count(&to.Count, 0, state.MaxCount))}
	return func(p place) {
		p.Fields(fields...)
		need(p, "time", "count")
	}
}

func moment(to *time.Time) func(place) {
	return strictyaml.Parsed(to, "a time such as 2026-02-20T14:32:01.5Z", func(text string) (t time.Time, ok bool) {
		ok = t.UnmarshalText([]byte(text)) == nil && state.CheckTime(t) == nil
		return t.UTC(), ok
	})
}
