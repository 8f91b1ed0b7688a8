package gateway

import (
	"reflect"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// UsageReport is what was used in some time.
type UsageReport struct {
	Since time.Time  `json:"since"`
	Until time.Time  `json:"until"`
	By    []string   `json:"by"`   // what the rows are grouped by
	Rows  []UsageRow `json:"rows"` // in the order of By
	Total UsageSum   `json:"total"`
}

// UsageRow is what was used by a project, of a model, with a key, in an hour or on a day: by as many
// of these as the report is grouped by.
type UsageRow struct {
	Time    time.Time `json:"time,omitzero"` // when the hour or day began
	Project string    `json:"project,omitempty"`
	Model   string    `json:"model,omitempty"`
	Key     string    `json:"key,omitempty"` // the virtual key's id
	UsageSum
}

// UsageSum is how much was used.
type UsageSum struct {
	Requests   int64        `json:"requests"` // calls that were sent to a provider
	Input      int64        `json:"input_tokens"`
	Cached     int64        `json:"cached_tokens"`      // the part of Input that was read from a cache
	CacheWrite int64        `json:"cache_write_tokens"` // the part of Input that was written to a cache
	Output     int64        `json:"output_tokens"`
	Reasoning  int64        `json:"reasoning_tokens"` // the part of Output that is reasoning
	Dollars    price.Amount `json:"dollars"`
	Denied     int64        `json:"denied"` // calls that were denied, which are not among Requests
	Waited     int64        `json:"waited"` // the part of Requests that has waited in line
	WaitTime   float64      `json:"waited_seconds"`

	// What calls have used beside tokens.
	Images        int64 `json:"images,omitempty"`
	AudioSeconds  int64 `json:"audio_seconds,omitempty"`
	Characters    int64 `json:"characters,omitempty"`
	WebSearches   int64 `json:"web_searches,omitempty"`
	FileSearches  int64 `json:"file_searches,omitempty"`
	Pages         int64 `json:"pages,omitempty"`
	VideoSeconds  int64 `json:"video_seconds,omitempty"`
	Containers    int64 `json:"containers,omitempty"`
	TokenHours    int64 `json:"token_hours,omitempty"`
	SearchUnits   int64 `json:"search_units,omitempty"`
	TrainedTokens int64 `json:"trained_tokens,omitempty"`
	ByteDays      int64 `json:"byte_days,omitempty"`
}

// Unit returns where the sum has a unit of [llm.Units].
func (s *UsageSum) Unit(i int) *int64 {
	return reflect.ValueOf(s).Elem().Field(unitPlaces[i]).Addr().Interface().(*int64)
}

// unitPlaces are the fields of a UsageSum with the units of [llm.Units].
var unitPlaces = func() (places [llm.UnitCount]int) {
	for i, u := range kind.Beside {
		places[i] = kind.PlaceOf(reflect.TypeFor[UsageSum](), u.Name())
	}
	return places
}()

// NewUsageReport returns the answer to a query.
func NewUsageReport(q books.Query, s *books.Summary, now time.Time) UsageReport {
	r := UsageReport{Since: time.Unix(q.Since, 0).UTC(), Until: now.UTC().Truncate(time.Second), By: []string{}, Rows: make([]UsageRow, len(s.Rows)), Total: usageSum(&s.Total)}
	if q.Until != 0 {
		r.Until = time.Unix(q.Until, 0).UTC()
	}
	dated := false
	for _, d := range q.By {
		r.By = append(r.By, string(d))
		dated = dated || d == books.ByHour || d == books.ByDay
	}
	for i := range s.Rows {
		row := &s.Rows[i]
		r.Rows[i] = UsageRow{Project: row.Project, Model: row.Model, Key: row.Owner.Key, UsageSum: usageSum(&row.Amounts)}
		if dated {
			r.Rows[i].Time = time.Unix(row.At, 0).UTC()
		}
	}
	return r
}

// LastUses returns when each key was last used, by its id, as far as the books know: by the hour in the last day, and by
// the day in the two years before. read asks the books.
func LastUses(read func(books.Query) (*books.Summary, error), now time.Time) (map[string]time.Time, error) {
	last := map[string]time.Time{}
	for _, q := range []books.Query{
		{By: []books.Dimension{books.ByKey, books.ByDay}, Since: now.AddDate(-2, 0, 0).Unix()},
		{By: []books.Dimension{books.ByKey, books.ByHour}, Since: now.Add(-24 * time.Hour).Unix()},
	} {
		sum, err := read(q)
		if err != nil {
			return last, err
		}
		for _, row := range sum.Rows {
			if at := time.Unix(row.At, 0).UTC(); row.Owner.Key != "" && at.After(last[row.Owner.Key]) {
				last[row.Owner.Key] = at
			}
		}
	}
	return last, nil
}

func usageSum(a *books.Amounts) (s UsageSum) {
	s = UsageSum{
		Requests:   a[books.Requests],
		Input:      a[books.Input],
		Cached:     a[books.Cached],
		CacheWrite: a[books.CacheWrite],
		Output:     a[books.Output],
		Reasoning:  a[books.Reasoning],
		Dollars:    price.Amount(a[books.Nanodollars]),
		Denied:     a[books.Denied],
		Waited:     a[books.Waited],
		WaitTime:   time.Duration(a[books.WaitTime]).Seconds(),
	}
	for i := range kind.Beside {
		*s.Unit(i) = a[int(books.Beside)+i]
	}
	return s
}
