// Package reconcile compares the books with what a provider says that it bills.
package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Line is what one model has used in a day, by the books or by the provider.
type Line struct {
	Day   string // such as 2026-11-17, of UTC
	Model string // empty: what the provider bills for tools, without a model
	Key   string // the provider's id of the key; empty: it does not say, or the line is of the books

	Requests, Input, Output int64
	NoTokens                bool // the provider counts units alone
	Units                   llm.Units
	Nanodollars             int64
}

// tools returns how often tools were used that the provider runs, which a bill has on lines of their own.
func (l *Line) tools() int64 {
	return l.Units[llm.WebSearches] + l.Units[llm.FileSearches] + l.Units[llm.Containers]
}

// Source is where a bill is read.
type Source struct {
	Provider string   // one of Providers
	BaseURL  string   // empty: the provider's own
	Key      string   // an administrator's key
	Keys     []string // the provider's ids of the keys that the gateway has; empty: all calls should have gone through it
	Since    time.Time
	Until    time.Time
}

// Providers are those whose bills can be read.
func Providers() []string { return []string{"anthropic", "openai", "openrouter"} }

// Bounds of what is read of a provider.
const (
	maxPages = 200
	maxPage  = 16 << 20
)

// Bill is what a provider says that it bills.
type Bill struct {
	Lines       []Line
	HasRequests bool     // it counts requests
	Units       []int    // that it counts for each model
	Tools       []int    // units that it counts of all models together
	CostsByKey  bool     // it says what each key has cost
	Keys        []string // see [Source]
}

// Read reads the bill from the provider's own API.
func (s Source) Read(ctx context.Context) (b Bill, err error) {
	defer func() { b.Keys = s.Keys }()
	switch s.Provider {
	case "openai":
		return s.openAI(ctx)
	case "anthropic":
		return s.anthropic(ctx)
	case "openrouter":
		return s.openRouter(ctx)
	}
	return b, fmt.Errorf("ratelimit: the bill of %q cannot be read: the provider must be one of %s", s.Provider, strings.Join(Providers(), ", "))
}

// days returns the first day and the one behind the last, both in UTC.
func (s Source) days() (from, to time.Time) {
	const day = 24 * time.Hour
	return s.Since.UTC().Truncate(day), s.Until.UTC().Add(day - 1).Truncate(day)
}

// openAIUsage are OpenAI's APIs of usage, by the last names of their paths, with what their results are grouped by. What
// moderations use is free, and vector stores are counted in bytes, which the books do not have: their costs are compared.
var openAIUsage = []struct{ kind, by string }{
	{"completions", "model,api_key_id"}, {"embeddings", "model,api_key_id"}, {"images", "model,api_key_id"},
	{"audio_speeches", "model,api_key_id"}, {"audio_transcriptions", "model,api_key_id"},
	{"web_search_calls", "model,api_key_id"}, {"file_search_calls", "api_key_id"}, {"code_interpreter_sessions", "project_id"},
}

// openAI reads the usage of all kinds, and the costs, which have a line for each part of a model.
func (s Source) openAI(ctx context.Context) (b Bill, err error) {
	from, to := s.days()
	query := url.Values{
		"start_time": {strconv.FormatInt(from.Unix(), 10)}, "end_time": {strconv.FormatInt(to.Unix(), 10)}, "bucket_width": {"1d"}, "limit": {"31"},
	}
	b.HasRequests, b.CostsByKey = true, true
	b.Units, b.Tools = []int{llm.Images, llm.Characters, llm.AudioSeconds, llm.WebSearches}, []int{llm.FileSearches, llm.Containers}
	for _, usage := range openAIUsage {
		query["group_by"] = strings.Split(usage.by, ",")
		err := s.pages(ctx, "/v1/organization/usage/"+usage.kind, query, func(text []byte) (page, error) {
			var p bucketPage[struct {
				Model    string `json:"model"`
				Key      string `json:"api_key_id"`
				Requests int64  `json:"num_model_requests"`
				Input    int64  `json:"input_tokens"`
				Output   int64  `json:"output_tokens"`

				Images     int64 `json:"images"`
				Characters int64 `json:"characters"`
				Seconds    int64 `json:"seconds"`
				Sessions   int64 `json:"num_sessions"`
				Searches   int64 `json:"num_requests"`
			}]
			err := json.Unmarshal(text, &p)
			for _, bucket := range p.Data {
				for _, r := range bucket.Results {
					l := Line{Day: bucket.day(), Model: r.Model, Key: r.Key, Requests: r.Requests, Input: r.Input, Output: r.Output}
					l.Units = llm.Units{llm.Images: r.Images, llm.Characters: r.Characters, llm.AudioSeconds: r.Seconds, llm.Containers: r.Sessions}
					switch usage.kind {
					case "web_search_calls": // the requests are those of completions
						l.Requests, l.Units[llm.WebSearches] = 0, r.Searches
					case "file_search_calls":
						l.Units[llm.FileSearches] = r.Searches
					default:
						l.NoTokens = l.Units != llm.Units{}
					}
					b.Lines = append(b.Lines, l)
				}
			}
			return p.page, err
		})
		if err != nil {
			return b, err
		}
	}
	query["group_by"] = []string{"line_item", "api_key_id"}
	return b, s.pages(ctx, "/v1/organization/costs", query, func(text []byte) (page, error) {
		var p bucketPage[struct {
			Amount struct {
				Value json.Number `json:"value"`
			} `json:"amount"`
			LineItem string `json:"line_item"`
			Key      string `json:"api_key_id"`
		}]
		err := json.Unmarshal(text, &p)
		for _, bucket := range p.Data {
			for _, r := range bucket.Results {
				model, _, tokens := strings.Cut(r.LineItem, ", ") // "gpt-6-sol, input"; a tool has one word for all
				if !tokens {
					model = ""
				}
				n, wrong := nanodollars(string(r.Amount.Value), 1)
				err = errors.Join(err, wrong)
				b.Lines = append(b.Lines, Line{Day: bucket.day(), Model: model, Key: r.Key, Nanodollars: n})
			}
		}
		return p.page, err
	})
}

// anthropic reads the usage of messages, and the costs, which are in cents. It does not count requests.
func (s Source) anthropic(ctx context.Context) (b Bill, err error) {
	from, to := s.days()
	query := url.Values{"starting_at": {from.Format(time.RFC3339)}, "ending_at": {to.Format(time.RFC3339)}, "bucket_width": {"1d"}, "limit": {"31"}}
	query["group_by[]"] = []string{"model", "api_key_id"}
	b.Units = []int{llm.WebSearches}
	err = s.pages(ctx, "/v1/organizations/usage_report/messages", query, func(text []byte) (page, error) {
		var p bucketPage[struct {
			Model    string `json:"model"`
			Key      string `json:"api_key_id"`
			Uncached int64  `json:"uncached_input_tokens"`
			Read     int64  `json:"cache_read_input_tokens"`
			Written  struct {
				Hour    int64 `json:"ephemeral_1h_input_tokens"`
				Minutes int64 `json:"ephemeral_5m_input_tokens"`
			} `json:"cache_creation"`
			Output int64 `json:"output_tokens"`
			Tools  struct {
				Searches int64 `json:"web_search_requests"`
			} `json:"server_tool_use"`
		}]
		err := json.Unmarshal(text, &p)
		for _, bucket := range p.Data {
			for _, r := range bucket.Results {
				input := r.Uncached + r.Read + r.Written.Hour + r.Written.Minutes
				b.Lines = append(b.Lines, Line{Day: bucket.day(), Model: r.Model, Key: r.Key, Input: input, Output: r.Output, Units: llm.Units{llm.WebSearches: r.Tools.Searches}})
			}
		}
		return p.page, err
	})
	if err != nil {
		return b, err
	}
	query["group_by[]"] = []string{"description"}
	return b, s.pages(ctx, "/v1/organizations/cost_report", query, func(text []byte) (page, error) {
		var p bucketPage[struct {
			Amount string `json:"amount"`
			Model  string `json:"model"`
		}]
		err := json.Unmarshal(text, &p)
		for _, bucket := range p.Data {
			for _, r := range bucket.Results {
				n, wrong := nanodollars(r.Amount, 100)
				err = errors.Join(err, wrong)
				b.Lines = append(b.Lines, Line{Day: bucket.day(), Model: r.Model, Nanodollars: n})
			}
		}
		return p.page, err
	})
}

// openRouter reads the activity, which is that of the last 30 days, with the costs.
func (s Source) openRouter(ctx context.Context) (b Bill, err error) {
	from, to := s.days()
	b.HasRequests = true
	return b, s.pages(ctx, "/api/v1/activity", url.Values{}, func(text []byte) (page, error) {
		var p struct {
			Data []struct {
				Date     string      `json:"date"`
				Model    string      `json:"model"`
				Usage    json.Number `json:"usage"`
				Requests int64       `json:"requests"`
				Input    int64       `json:"prompt_tokens"`
				Output   int64       `json:"completion_tokens"`
			} `json:"data"`
		}
		err := json.Unmarshal(text, &p)
		for _, r := range p.Data {
			day, _, _ := strings.Cut(r.Date, " ")
			at, wrong := time.Parse(time.DateOnly, day)
			if wrong == nil && (at.Before(from) || !at.Before(to)) {
				continue
			}
			n, unread := nanodollars(string(r.Usage), 1)
			err = errors.Join(err, wrong, unread)
			b.Lines = append(b.Lines, Line{Day: day, Model: r.Model, Requests: r.Requests, Input: r.Input, Output: r.Output, Nanodollars: n})
		}
		return page{}, err
	})
}

// page says whether another page follows, and how it is asked for.
type page struct {
	More bool   `json:"has_more"`
	Next string `json:"next_page"`
}

// bucketPage is a page of days.
type bucketPage[R any] struct {
	page
	Data []bucket[R] `json:"data"`
}

// bucket is a day, which OpenAI and Anthropic write in different ways.
type bucket[R any] struct {
	Start   int64     `json:"start_time"`
	StartAt time.Time `json:"starting_at"`
	Results []R       `json:"results"`
}

func (b *bucket[R]) day() string {
	if b.Start > 0 {
		return time.Unix(b.Start, 0).UTC().Format(time.DateOnly)
	}
	return b.StartAt.UTC().Format(time.DateOnly)
}

// pages reads all pages of an API.
func (s Source) pages(ctx context.Context, path string, query url.Values, read func(text []byte) (page, error)) error {
	for range maxPages {
		text, err := s.fetch(ctx, path, query)
		if err != nil {
			return err
		}
		p, err := read(text)
		if err != nil {
			return fmt.Errorf("ratelimit: the answer of %s at %s cannot be read: %w", s.Provider, path, err)
		}
		if !p.More || p.Next == "" {
			query.Del("page")
			return nil
		}
		query.Set("page", p.Next)
	}
	return fmt.Errorf("ratelimit: %s has more than %d pages at %s: ask for fewer days", s.Provider, maxPages, path)
}

// addresses are the providers' own.
var addresses = map[string]string{"openai": "https://api.openai.com", "anthropic": "https://api.anthropic.com", "openrouter": "https://openrouter.ai"}

// client bounds the time of each page.
var client = &http.Client{Timeout: 30 * time.Second}

func (s Source) fetch(ctx context.Context, path string, query url.Values) ([]byte, error) {
	base := strings.TrimSuffix(s.BaseURL, "/")
	if base == "" {
		base = addresses[s.Provider]
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: %s is no address of a provider: %w", base, err)
	}
	if s.Provider == "anthropic" {
		r.Header.Set("X-Api-Key", s.Key)
		r.Header.Set("Anthropic-Version", "2023-06-01")
	} else {
		r.Header.Set("Authorization", "Bearer "+s.Key)
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: %s does not answer: %w", s.Provider, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxPage+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("ratelimit: the answer of %s breaks off: %w", s.Provider, err)
	case len(text) > maxPage:
		return nil, fmt.Errorf("ratelimit: the answer of %s at %s is longer than %d bytes", s.Provider, path, maxPage)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("ratelimit: %s answers %s with %s: an administrator's key is needed: %.200s", s.Provider, path, response.Status, text)
	}
	return text, nil
}

// money is a decimal number, with an exponent of two digits at most: as JSON has small amounts.
var money = regexp.MustCompile(`^-?[0-9]{1,18}(\.[0-9]{1,60})?([eE][-+]?[0-9]{1,2})?$`)

// nanodollars returns an amount of money in billionths of a dollar, rounded to the nearest. parts is how many of its unit
// are a dollar.
func nanodollars(text string, parts int64) (int64, error) {
	if !money.MatchString(text) {
		return 0, fmt.Errorf("%.40q is no amount of money", text)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, fmt.Errorf("%.40q is no amount of money", text)
	}
	r.Mul(r, big.NewRat(1_000_000_000, parts))
	r.Add(r, big.NewRat(1, 2))
	n := new(big.Int).Div(r.Num(), r.Denom())
	if !n.IsInt64() {
		return 0, fmt.Errorf("%.40q is no amount of money", text)
	}
	return n.Int64(), nil
}
