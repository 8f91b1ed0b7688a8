package statefile

import (
	"errors"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
)

type yamlValue = strictyaml.Value

var field = strictyaml.NewField

// parse reads the text of a file. The error is that of the first fault, and names the file.
func parse(name, text string) (f File, err error) {
	doc := strictyaml.Parse(name, text, maxFile, maxParts)
	doc.Root().Fields(
		field("quotas", func(v yamlValue) { f.Quotas = models(v, quota) }),
		field("state", func(v yamlValue) { f.State = models(v, usage) }),
	)
	if faults := doc.Faults(); len(faults) > 0 {
		return File{}, errors.New("ratelimit: " + faults[0].String())
	}
	return f, nil
}

// models reads a mapping from models to values. For null it returns nil, which differs from an empty
// mapping.
func models[T any](v yamlValue, read func(yamlValue) T) map[string]T {
	if v.Null() {
		return nil
	}
	all := map[string]T{}
	v.Entries(func(model string, key, value yamlValue) {
		if err := modelname.Check(model); err != nil {
			key.Fault("%s", message.Plain(err))
		}
		all[model] = read(value)
	})
	return all
}

// quota reads a quota. It accepts null neither for a quota nor for a field of it: to forget a number
// must not lift a limit.
func quota(v yamlValue) (q state.Quota) {
	if v.Null() {
		v.Fault("it has no value: it must be a mapping; {} is without limits")
	}
	v.Fields(QuotaFields(&q)...)
	CheckQuota(v, &q)
	return q
}

// CheckQuota records a fault if the quota of a mapping is not valid: numbers are in range by now, so
// only the day or the reserve can be wrong.
func CheckQuota(v yamlValue, q *state.Quota) {
	err := q.Validate()
	if err == nil || v.Faulty() {
		return
	}
	name := "day_resets_at"
	switch {
	case q.Reserve >= 100:
		name = "reserve"
	case q.CheckPace() != nil:
		name = "pace"
	}
	v.At(name).Fault("%s", message.Plain(err))
}

// QuotaFields returns the fields of a quota, for state files and for the gateway's configuration.
func QuotaFields(q *state.Quota) (fields []strictyaml.Field) {
	for _, m := range q.Maxima() {
		fields = append(fields, field(m.Name, strictyaml.Count(m.Value, 0, state.MaxQuota)))
	}
	return append(fields,
		field("day_resets_at", strictyaml.Any(&q.DayResetsAt, "a time of day and a time zone, such as 00:00 America/Los_Angeles")),
		field("auto", strictyaml.Flag(&q.Auto)),
		field("margin", strictyaml.Duration(&q.Margin, 0, state.MaxMargin)),
		field("reserve", percent(&q.Reserve, "; what calls reserve of its tokens is reserve_tokens")),
		field("reserve_tokens", strictyaml.OneOf(&q.ReserveTokens, engine.ReserveMost, engine.ReserveExpected)),
		field("on_overrun", strictyaml.OneOf(&q.OnOverrun, engine.OverrunDebt, engine.OverrunCut)),
		field("pace", strictyaml.Parsed(&q.Pace, state.PaceEven, func(text string) (string, bool) { return text, text == state.PaceEven })),
		field("burst", burst(&q.PaceBurst)),
		field("count", weights(q)),
	)
}

// weights returns the reader of as how many tokens each kind of token counts.
func weights(q *state.Quota) func(yamlValue) {
	var fields []strictyaml.Field
	for _, w := range q.Weights() {
		want := fmt.Sprintf("a number from 0 to %d with up to four digits behind the point, such as 0.25", llm.MaxWeight)
		fields = append(fields, field(w.Name, strictyaml.Parsed(w.Value, want, func(text string) (llm.Weight, bool) {
			weight, err := llm.ParseWeight(text)
			return weight, err == nil
		})))
	}
	return func(v yamlValue) { v.Fields(fields...) }
}

func burst(to *limit.Percent) func(yamlValue) {
	return strictyaml.Parsed(to, "a percentage above 0%, such as 10%", func(text string) (limit.Percent, bool) {
		p, err := limit.ParsePercent(text)
		return p, err == nil && p > 0
	})
}

// Percent returns the reader of a percentage.
func Percent(to *limit.Percent) func(yamlValue) { return percent(to, "") }

// percent returns the reader of a percentage. hint ends the error about a text that is none.
func percent(to *limit.Percent, hint string) func(yamlValue) {
	return strictyaml.Parsed(to, "a percentage from 0% to 100%, such as 20%"+hint, func(text string) (limit.Percent, bool) {
		p, err := limit.ParsePercent(text)
		return p, err == nil
	})
}

// usage reads what a model has used. It requires every field that files of the first version had, so
// that a file that was cut short is not taken for a complete one. An explicit null means that nothing
// was used.
func usage(v yamlValue) (u state.Usage) {
	if v.Null() && !v.Missing() {
		return u
	}
	v.Fields(
		field("requests", each(&u.Requests, moment)),
		field("tokens", each(&u.Tokens, entry)),
		field("day_start", moment(&u.DayStart)),
		field("day_count", strictyaml.Count(&u.DayCount, 0, state.MaxCount)),
		field("input_tokens", each(&u.InputTokens, entry)),
		field("output_tokens", each(&u.OutputTokens, entry)),
		field("day_tokens", func(v yamlValue) {
			if !v.Null() {
				u.DayTokens = new(state.Entry)
				entry(u.DayTokens)(v)
			}
		}),
	)
	need(v, "requests", "tokens", "day_start", "day_count")
	return u
}

// need records a fault for each required field that a mapping lacks, unless it has another fault.
func need(v yamlValue, names ...string) {
	for _, name := range names {
		if !v.Has(name) && !v.Faulty() {
			v.Fault("it lacks %s: the file may have been cut short", name)
		}
	}
}

// each returns the reader of a list. Null means an empty list.
func each[T any](to *[]T, read func(*T) func(yamlValue)) func(yamlValue) {
	return func(v yamlValue) {
		if v.Null() {
			return
		}
		var item T
		readItem := read(&item)
		v.Items(func(v yamlValue) {
			readItem(v)
			*to = append(*to, item)
		})
	}
}

func entry(to *state.Entry) func(yamlValue) {
	fields := []strictyaml.Field{field("time", moment(&to.Time)), field("count", strictyaml.Count(&to.Count, 0, state.MaxCount))}
	return func(v yamlValue) {
		v.Fields(fields...)
		need(v, "time", "count")
	}
}

func moment(to *time.Time) func(yamlValue) {
	return strictyaml.Parsed(to, "a time such as 2026-02-20T14:32:01.5Z", func(text string) (t time.Time, ok bool) {
		ok = t.UnmarshalText([]byte(text)) == nil && state.CheckTime(t) == nil
		return t.UTC(), ok
	})
}
