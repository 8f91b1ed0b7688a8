package mockprovider

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// BillLine is what a provider bills for a model in a day, or for a tool if Model is empty.
type BillLine struct {
	Day                     time.Time // midnight, UTC
	Model, Key              string
	Requests, Input, Output int64
	Units                   llm.Units
	Nanodollars             int64
}

// billPage is how many days of a bill a page has.
const billPage = 3

// dollars returns the amount of a line in dollars, or in a part of them, as a decimal number.
func (l *BillLine) dollars(parts int64) string {
	n := l.Nanodollars * parts
	return fmt.Sprintf("%d.%09d", n/1_000_000_000, n%1_000_000_000)
}

// bills are the APIs with which administrators read what a provider bills, by their paths.
var bills = map[string]func(l *BillLine) object{
	"/v1/organization/usage/completions": func(l *BillLine) object {
		if l.isMedia() || l.Units[llm.Containers] > 0 {
			return nil
		}
		return object{"object": "organization.usage.completions.result", "model": l.Model, "api_key_id": l.Key, "num_model_requests": l.Requests, "input_tokens": l.Input, "output_tokens": l.Output}
	},
	"/v1/organization/usage/embeddings":           func(*BillLine) object { return nil },
	"/v1/organization/usage/images":               func(l *BillLine) object { return l.media(llm.Images, "images") },
	"/v1/organization/usage/audio_speeches":       func(l *BillLine) object { return l.media(llm.Characters, "characters") },
	"/v1/organization/usage/audio_transcriptions": func(l *BillLine) object { return l.media(llm.AudioSeconds, "seconds") },
	"/v1/organization/usage/web_search_calls": func(l *BillLine) object {
		if l.Units[llm.WebSearches] == 0 {
			return nil
		}
		return object{"object": "organization.usage.web_searches.result", "model": l.Model, "api_key_id": l.Key, "num_model_requests": l.Requests, "num_requests": l.Units[llm.WebSearches]}
	},
	"/v1/organization/usage/file_search_calls": func(l *BillLine) object {
		if l.Units[llm.FileSearches] == 0 {
			return nil
		}
		return object{"object": "organization.usage.file_searches.result", "api_key_id": l.Key, "num_requests": l.Units[llm.FileSearches]}
	},
	"/v1/organization/usage/code_interpreter_sessions": func(l *BillLine) object {
		if l.Units[llm.Containers] == 0 {
			return nil
		}
		return object{"object": "organization.usage.code_interpreter_sessions.result", "num_sessions": l.Units[llm.Containers]}
	},
	"/v1/organization/costs": func(l *BillLine) object {
		item := "web search tool calls"
		if l.Model != "" {
			item = l.Model + ", input"
		}
		return object{"object": "organization.costs.result", "amount": object{"value": raw(l.dollars(1)), "currency": "usd"}, "line_item": item, "api_key_id": l.Key}
	},
	"/v1/organizations/usage_report/messages": func(l *BillLine) object {
		return object{
			"model": l.Model, "api_key_id": l.Key, "uncached_input_tokens": l.Input, "cache_read_input_tokens": 0, "output_tokens": l.Output,
			"cache_creation": object{"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0}, "server_tool_use": object{"web_search_requests": l.Units[llm.WebSearches]},
		}
	},
	"/v1/organizations/cost_report": func(l *BillLine) object {
		return object{"amount": l.dollars(100), "currency": "USD", "model": l.Model, "cost_type": "tokens"}
	},
}

// isMedia reports whether the line is of a model that is billed in units.
func (l *BillLine) isMedia() bool {
	return l.Units[llm.Images]+l.Units[llm.Characters]+l.Units[llm.AudioSeconds] > 0
}

// media returns the usage of a model that is billed in a unit, or nil if the line is none of it.
func (l *BillLine) media(unit int, name string) object {
	if l.Units[unit] == 0 {
		return nil
	}
	return object{"model": l.Model, "api_key_id": l.Key, "num_model_requests": l.Requests, name: l.Units[unit]}
}

// servesBills answers a request for what was billed, if it is one.
func (e *exchange) servesBills() bool {
	one := bills[e.r.URL.Path]
	if e.server.config.Bill == nil || one == nil && e.r.URL.Path != "/api/v1/activity" {
		return false
	}
	if key := cmp.Or(e.r.Header.Get("X-Api-Key"), strings.TrimPrefix(e.r.Header.Get("Authorization"), "Bearer ")); key != "admin" {
		e.fail(failure{status: http.StatusUnauthorized, message: "the key is not an administrator's"}, limitStates{})
		return true
	}
	lines := e.server.config.Bill()
	if one == nil {
		activity := []object{}
		for _, l := range lines {
			activity = append(activity, object{
				"date": l.Day.Format(time.DateOnly), "model": l.Model, "usage": raw(l.dollars(1)), "requests": l.Requests, "prompt_tokens": l.Input, "completion_tokens": l.Output,
			})
		}
		e.json(http.StatusOK, encode(object{"data": activity}))
		return true
	}
	byDay := map[time.Time][]object{}
	for i := range lines {
		if o := one(&lines[i]); o != nil {
			byDay[lines[i].Day] = append(byDay[lines[i].Day], o)
		}
	}
	var days []time.Time
	for day := range byDay {
		days = append(days, day)
	}
	slices.SortFunc(days, time.Time.Compare)
	first, _ := strconv.Atoi(e.r.URL.Query().Get("page"))
	first = min(max(first, 0), len(days))
	last := min(first+billPage, len(days))
	data := []object{}
	for _, day := range days[first:last] {
		data = append(data, object{"object": "bucket", "start_time": day.Unix(), "starting_at": day.Format(time.RFC3339), "results": byDay[day]})
	}
	e.json(http.StatusOK, encode(object{"object": "page", "data": data, "has_more": last < len(days), "next_page": strconv.Itoa(last)}))
	return true
}
