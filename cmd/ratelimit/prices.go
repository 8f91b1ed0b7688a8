package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// priceQuestion is what the flags of prices ask.
type priceQuestion struct {
	config   string // the path of the configuration; empty: none
	provider string
	at       string // a date; empty: now
	usage    llm.Usage
	asJSON   bool

	table    *price.Table
	unpriced *price.Price // nil: models without a price have none
	time     time.Time
}

func newPrices() *cobra.Command {
	var q priceQuestion
	c := &cobra.Command{
		Use:   "prices [MODEL]",
		Short: "Show what models cost, or what a call costs and why",
		Long: `Show what models cost, in dollars for a million tokens; or, of one model, what a call costs
and why: the price of each part, where the prices come from, since when they hold, and what
would be reserved for the call. Prices of a configuration win over those that are built in.`,
		Example: `  ratelimit prices
  ratelimit prices --provider anthropic
  ratelimit prices claude-opus-5-5 --input 50_000 --cached 40_000 --output 1_500
  ratelimit prices gpt-6-astra --tier batch --config gateway.yaml --json`,
		Args:    arguments,
		PreRunE: noEmptyFlags,
		RunE: func(c *cobra.Command, args []string) error {
			if err := q.prepare(); err != nil {
				return err
			}
			if len(args) == 0 {
				return q.list(c.OutOrStdout())
			}
			return q.explain(c.OutOrStdout(), args[0])
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&q.config, "config", "", "read prices and providers from the configuration `FILE`")
	f.StringVar(&q.provider, "provider", "", "the `PROVIDER` of the model (default: any)")
	f.StringVar(&q.at, "at", "", "the `DATE` of the call, such as 2027-01-01 (default: now)")
	f.StringVar(&q.usage.Tier, "tier", "", "the service tier: batch, flex, priority or fast")
	f.IntVar(&q.usage.Input, "input", 1000, "tokens of the prompt")
	f.IntVar(&q.usage.Cached, "cached", 0, "tokens of the prompt that are read from a cache")
	f.IntVar(&q.usage.CacheWrite, "cache-write", 0, "tokens of the prompt that are written to a cache")
	f.IntVar(&q.usage.CacheWriteHour, "cache-write-hour", 0, "tokens of --cache-write that are kept for an hour")
	f.IntVar(&q.usage.InputAudio, "audio-input", 0, "tokens of the prompt that are audio")
	f.IntVar(&q.usage.InputImage, "image-input", 0, "tokens of the prompt that are images")
	f.IntVar(&q.usage.Output, "output", 1000, "tokens of the output")
	f.IntVar(&q.usage.Reasoning, "reasoning", 0, "tokens of the output that are reasoning")
	f.IntVar(&q.usage.OutputAudio, "audio-output", 0, "tokens of the output that are audio")
	f.IntVar(&q.usage.OutputImage, "image-output", 0, "tokens of the output that are images")
	for i, u := range kind.Beside {
		f.Int64Var(&q.usage.Units[i], u.String(), 0, u.Means)
	}
	f.BoolVar(&q.asJSON, "json", false, "print JSON")
	c.MarkFlagFilename("config", "yaml", "yml")
	return c
}

// exampleUnits are what a call of a model uses that is paid for by units alone, unless a flag says something else.
var exampleUnits = func() (units llm.Units) {
	for i, u := range kind.Beside {
		units[i] = u.Example
	}
	return units
}()

// example returns what the call uses: of a model that is paid for by units alone no tokens, and some of its unit.
func (q *priceQuestion) example(p *price.Price) llm.Usage {
	u := q.usage
	if !p.ByUnits(exampleUnits, q.time) {
		return u
	}
	u.Input, u.Output = 0, 0
	for i, n := range exampleUnits {
		var one llm.Units
		one[i] = n
		if q.usage.Units == (llm.Units{}) && p.ByUnits(one, q.time) {
			u.Units = one
		}
	}
	return u
}

// prepare checks the flags, and reads the configuration.
func (q *priceQuestion) prepare() error {
	if err := q.check(); err != nil {
		return usageError{err}
	}
	q.table = price.Known()
	if q.config == "" {
		return nil
	}
	cfg, err := config.Load(q.config, config.Overrides{})
	if err != nil {
		return err
	}
	q.table, q.unpriced = cfg.Prices, cfg.Unpriced
	return nil
}

func (q *priceQuestion) check() (err error) {
	q.time = time.Now()
	if q.at != "" {
		q.time, err = time.Parse(time.DateOnly, q.at)
		if err != nil {
			return fmt.Errorf("--at is %s: it must be a date such as 2027-01-01", message.Quote(q.at))
		}
	}
	u := &q.usage
	if t := u.Tier; t != "" && t != "batch" && t != "flex" && t != "priority" && t != "fast" {
		return fmt.Errorf("--tier is %s: it must be batch, flex, priority or fast", message.Quote(t))
	}
	for _, c := range []struct {
		flag, whole string
		n, most     int
	}{
		{"input", "", u.Input, 0}, {"output", "", u.Output, 0},
		{"cached", "input", u.Cached, u.Input}, {"cache-write", "input", u.CacheWrite, u.Input - max(u.Cached, 0)},
		{"cache-write-hour", "cache-write", u.CacheWriteHour, u.CacheWrite}, {"audio-input", "input", u.InputAudio, u.Input},
		{"image-input", "input", u.InputImage, u.Input - max(u.InputAudio, 0)}, {"reasoning", "output", u.Reasoning, u.Output},
		{"audio-output", "output", u.OutputAudio, u.Output}, {"image-output", "output", u.OutputImage, u.Output - max(u.OutputAudio, 0)},
	} {
		switch {
		case c.n < 0:
			return fmt.Errorf("--%s is %d: it must be 0 or more", c.flag, c.n)
		case c.whole != "" && c.n > c.most:
			return fmt.Errorf("--%s is %d: it must be at most %d, which is what is left of --%s", c.flag, c.n, c.most, c.whole)
		}
	}
	for i, n := range u.Units {
		if n < 0 {
			return fmt.Errorf("--%s is %d: it must be 0 or more", kind.Beside[i], n)
		}
	}
	return nil
}

// pricedCall is what a call of a model costs, as JSON.
type pricedCall struct {
	Provider    string       `json:"provider,omitempty"`
	Model       string       `json:"model"`
	Source      string       `json:"source"`
	From        string       `json:"from,omitempty"`         // since when the prices hold
	Tier        string       `json:"tier,omitempty"`         // missing: the usual one
	AboveTokens int          `json:"above_tokens,omitempty"` // the prices are those of longer prompts
	Lines       []price.Line `json:"lines"`
	Cost        price.Amount `json:"cost"`
	Reserved    price.Amount `json:"reserved"` // the most that a call with so many tokens can cost
	until       string       // when other prices begin, if that is known
}

// explain prints what a call of a model costs.
func (q *priceQuestion) explain(w io.Writer, model string) error {
	call, err := q.priced(model)
	if err != nil {
		return err
	}
	if q.asJSON {
		return console.Of(w).JSON(call)
	}
	about := console.NewList(2)
	about.Add("model", strings.TrimPrefix(call.Provider+"/"+call.Model, "/"))
	about.Add("prices", call.Source)
	about.Add("since", cmp.Or(call.From, "always"))
	if call.until != "" {
		about.Add("until", call.until)
	}
	about.Add("tier", aboutTier(q.usage.Tier, call.Tier))
	if call.AboveTokens > 0 {
		about.Add("prompt", "of more than "+numeral.Grouped(int64(call.AboveTokens))+" tokens, which costs more")
	}
	parts := console.NewTable(console.Text("part"), console.Number("tokens"), console.Number("a million"), console.Number("costs"))
	for _, l := range call.Lines {
		part, tokens, rate := l.Part, "", ""
		switch {
		case l.Tokens > 0:
			tokens, rate = numeral.Grouped(int64(l.Tokens)), l.Rate.String()
		case l.Units > 0:
			part = fmt.Sprintf("%s: %s at %s for %s", l.Part, numeral.Grouped(l.Units), l.Rate, kind.Beside[slices.Index(price.UnitNames(), l.Part)].PriceOf)
		}
		parts.Add(part, tokens, rate, l.Cost.String())
	}
	parts.Add("the call", "", "", call.Cost.String())
	parts.Add("reserved at most", "", "", call.Reserved.String())
	return console.Of(w).Lines(append(append(about.Lines(0), ""), parts.Lines(0)...))
}

func aboutTier(asked, has string) string {
	switch {
	case asked == "":
		return "usual"
	case has == "":
		return asked + ", which has no prices of its own"
	}
	return has
}

// priced finds the model, and prices the call.
func (q *priceQuestion) priced(model string) (*pricedCall, error) {
	e, source, err := q.find(model)
	if err != nil {
		return nil, err
	}
	sheet := e.Price.Sheet(q.usage.Input, q.usage.Tier, q.time)
	call := &pricedCall{Provider: e.Provider, Model: e.Model, Source: source, Tier: sheet.Tier, AboveTokens: sheet.Tokens}
	if !sheet.From.IsZero() {
		call.From = sheet.From.Format(time.DateOnly)
	}
	for _, t := range e.Price.Terms() {
		if t.From.After(q.time) {
			call.until = t.From.Format(time.DateOnly)
			break
		}
	}
	usage := q.example(e.Price)
	call.Cost, call.Lines = e.Price.Cost(usage, q.time)
	units, _ := e.Price.Units(usage.Units, q.time)
	call.Reserved = e.Price.Most(usage.Input, usage.Output, q.usage.Tier, q.time) + units
	return call, nil
}

// find returns the price of a model and its source. The name may begin with a provider.
func (q *priceQuestion) find(model string) (price.Entry, string, error) {
	e, ok := q.table.Find(q.provider, model, q.time)
	if provider, name, cut := strings.Cut(model, "/"); !ok && cut && q.provider == "" {
		e, ok = q.table.Find(provider, name, q.time)
	}
	about := q.table.About()
	switch {
	case ok && e.Provider != "":
		return e, fmt.Sprintf("built in, from %s %s of %s", about.Source, about.Version, about.Date), nil
	case ok:
		return e, q.config, nil
	case q.unpriced != nil:
		return price.Entry{Model: model, Price: q.unpriced}, "unpriced of " + q.config, nil
	}
	text := "there is no price for " + message.Quote(model)
	var names []string
	for e := range q.table.All() {
		if q.provider == "" || e.Provider == q.provider {
			names = append(names, e.Model)
		}
	}
	if near := message.Nearest(strings.ToLower(model), names); near != "" {
		text += ": did you mean " + near + "?"
	} else {
		text += ": prices of the configuration may have one"
	}
	return price.Entry{}, "", errors.New(text)
}
