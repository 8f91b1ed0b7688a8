package price_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// The embedded table has its source, and no price that cannot be meant.
func TestKnown(t *testing.T) {
	about := price.Known().About()
	if about.Source == "" || about.Version == "" || !strings.HasPrefix(about.Licence, "MIT") {
		t.Errorf("the table is %+v", about)
	}
	if _, err := time.Parse(time.DateOnly, about.Date); err != nil {
		t.Error(err)
	}
	n, dear := 0, 0
	for e := range price.Known().All() {
		n++
		for _, terms := range e.Price.Terms() {
			if terms.Input > 1000*price.Dollar || terms.Output > 2000*price.Dollar {
				t.Errorf("a million tokens of %s cost %v and %v", e.Model, terms.Input, terms.Output)
			}
			if terms.Output > terms.Input && terms.Input > 0 {
				dear++
			}
		}
		if got, ok := price.Known().Find(e.Provider, e.Model, today); !ok {
			t.Errorf("%s of %s is not found by its own name, but %+v", e.Model, e.Provider, got)
		}
	}
	if n < 1000 || dear < n/2 {
		t.Errorf("of %d models, %d have output that is dearer than input", n, dear)
	}
	if size, err := os.Stat("table.json"); err != nil || size.Size() > 256<<10 {
		t.Errorf("the table has %d bytes, %v", size.Size(), err)
	}
}

// Calls cost what the data set's own code says: see scripts/prices/oracle.mjs.
func TestAgainstTheDataSet(t *testing.T) {
	f, err := os.Open("testdata/genai-prices.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan()
	if lines.Text() != "# "+price.Known().About().Version {
		t.Fatalf("the table is of version %s: make the file anew as scripts/prices/oracle.mjs says", price.Known().About().Version)
	}
	n := 0
	for ; lines.Scan(); n++ {
		cells := strings.Split(lines.Text(), ",")
		var tokens [11]int
		for i := range tokens {
			tokens[i], _ = strconv.Atoi(cells[3+i])
		}
		want, err1 := strconv.ParseFloat(cells[14], 64)
		at, err2 := time.Parse(time.DateOnly, cells[2])
		p, ok := price.Known().Of(cells[0], cells[1], at)
		if err1 != nil || err2 != nil || !ok {
			t.Errorf("%s: %v, %v, found %v", lines.Text(), err1, err2, ok)
			continue
		}
		got, parts := cost(t, p, llm.Usage{
			Input: tokens[0], Cached: tokens[1], CacheWrite: tokens[2], CacheWriteHour: tokens[3], InputAudio: tokens[4], CachedAudio: tokens[5],
			InputImage: tokens[6], Output: tokens[7], Reasoning: tokens[8], OutputAudio: tokens[9], OutputImage: tokens[10],
		}, at)
		// Prices with more than nine digits are rounded up, and the data set computes with floats.
		if off := float64(got) - want*price.Dollar; off < -0.01 || off > 1.5 {
			t.Errorf("%s: it costs %d, want %f: %+v", lines.Text(), got, want*price.Dollar, parts)
		}
	}
	if n < 300 {
		t.Errorf("there are %d calls", n)
	}
}

// Names are found as clients and providers write them.
func TestNames(t *testing.T) {
	for _, c := range []struct{ provider, name, want string }{
		{"openai", "gpt-6-astra", "openai/gpt-6-astra"},
		{"openai", "gpt-6-astra-2026-10-01", "openai/gpt-6-astra"},
		{"openai", "GPT-4o", "openai/gpt-4o"},
		{"openai", "gpt-4o-2030-01-01", "openai/gpt-4o"},
		{"openai", "ft:gpt-4o-2024-08-06:acme::x1", "openai/ft:gpt-4o"},
		{"azure", "gpt-4o", "openai/gpt-4o"},
		{"anthropic", "claude-opus-5-5", "anthropic/claude-opus-5-5"},
		{"anthropic", "claude-opus-5-5-20261001", "anthropic/claude-opus-5-5"},
		{"anthropic", "claude-3-5-haiku-latest", "anthropic/claude-3-5-haiku-latest"},
		{"gemini", "models/gemini-2.5-pro", "google/gemini-2.5-pro"},
		{"gemini", "gemini-2.5-pro-preview-tts", "google/gemini-2.5-pro-tts"},
		{"vertex", "publishers/google/models/gemini-2.5-flash", "google/gemini-2.5-flash"},
		{"vertex", "claude-sonnet-4@20250514", "google/claude-4-sonnet"},
		{"bedrock", "us.anthropic.claude-opus-4-6-v1:0", "aws/regional.anthropic.claude-opus-4-6-v1:0"},
		{"bedrock", "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0", "aws/amazon.nova-pro-v1:0"},
		{"openrouter", "anthropic/claude-sonnet-4.5", "openrouter/anthropic/claude-sonnet-4.5"},
		{"openrouter", "openai/gpt-4o:nitro", "openrouter/openai/gpt-4o"},
		{"groq", "openai/gpt-oss-120b", "groq/openai/gpt-oss-120b"},
		{"xai", "grok-4.5", "x-ai/grok-4.5"},
		{"", "claude-opus-5-5", "anthropic/claude-opus-5-5"},
		{"", "gpt-4o", "openai/gpt-4o"},
		{"openai", "no-such-model", "none"},
		{"compatible", "gpt-4o", "none"},
		{"local", "gpt-4o", "none"},
		{"openai", "", "none"},
	} {
		e, ok := price.Known().Find(c.provider, c.name, today)
		got := "none"
		if ok {
			got = e.Provider + "/" + e.Model
		}
		if got != c.want {
			t.Errorf("%s of %q is %s, want %s", c.name, c.provider, got, c.want)
		}
	}
}

// Prices of the configuration win, the more exact the sooner, from their dates on.
func TestOverrides(t *testing.T) {
	of := func(dollars price.Rate, from time.Time) *price.Price {
		return mustNew(t, price.Terms{From: from, Rates: price.Rates{Input: dollars * price.Dollar}})
	}
	tomorrow := today.AddDate(0, 0, 1)
	table := price.Known().With(
		price.Override{Model: "gpt-6-luna", Price: of(10, tomorrow)},
		price.Override{Model: "gpt-6*", Price: of(1, time.Time{})},
		price.Override{Model: "gpt-6-astra", Price: of(2, time.Time{})},
		price.Override{Model: "azure/gpt-6-astra", Price: of(3, time.Time{})},
		price.Override{Model: "gpt-6-astra-2027*", Price: of(4, time.Time{})},
		price.Override{Model: "*", Price: of(5, tomorrow)},
		price.Override{Model: "My-Model", Price: of(6, time.Time{})},
	).With(price.Override{Model: "late", Price: of(7, tomorrow)})
	for _, c := range []struct {
		provider, name string
		at             time.Time
		want           price.Rate
	}{
		{"openai", "gpt-6-sol", today, 1},
		{"openai", "gpt-6-astra", today, 2},
		{"azure", "gpt-6-astra", today, 3},
		{"openai", "gpt-6-astra-2026-12-01", today, 2},
		{"openai", "gpt-6-astra-2027-01-01", today, 4},
		{"openai", "gpt-6-luna", today, 1},
		{"openai", "gpt-6-luna", tomorrow, 10},
		{"anthropic", "claude-opus-5-5", today, 4},
		{"anthropic", "claude-opus-5-5", tomorrow, 5},
		{"local", "my-model", today, 6},
		{"local", "late", today, 0},
		{"local", "late", tomorrow, 7},
	} {
		p, ok := table.Of(c.provider, c.name, c.at)
		got := price.Rate(0)
		if ok {
			got = p.Sheet(1, "", c.at).Input / price.Dollar
		}
		if got != c.want {
			t.Errorf("%s of %s costs %d, want %d", c.name, c.provider, got, c.want)
		}
	}
	if _, ok := price.Known().Of("local", "my-model", today); ok {
		t.Error("With has changed the table that it was called on")
	}
}

// Of several models that a name stands for, the first in the table counts, whatever its rule is.
func TestFirstModelCounts(t *testing.T) {
	table, err := price.Read([]byte(`{"providers":[{"id":"p","models":[
		{"id":"a","match":["x-1*"],"price":{}},{"id":"b","match":["x*","y"],"not":["*-no"],"price":{}},{"id":"c","match":["x-2","*"],"price":{}},{"id":"x-3","price":{}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"x-1": "a", "x-2": "b", "x-3": "b", "y": "b", "x-no": "c", "z": "c", "a": "a", "c": "c"} {
		if e, _ := table.Find("p", name, today); e.Model != want {
			t.Errorf("%s is %s, want %s", name, e.Model, want)
		}
	}
	for _, bad := range []string{`{"providers":[{"id":"p","models":[{"id":"a"}]}]}`, `{"providers":[{"id":"p","models":[{"price":{}}]}]}`, `{`} {
		if _, err := price.Read([]byte(bad)); err == nil {
			t.Errorf("%s is a table", bad)
		}
	}
}

// Providers have names of the caller's own.
func TestProviders(t *testing.T) {
	table := price.Known().WithProviders(map[string]llm.Provider{
		"Azure-EU": dialect.Azure, "google": dialect.Gemini, "deepseek": dialect.Compatible, "cloud": dialect.Vertex, "own": dialect.Compatible, "aws": dialect.Bedrock,
	}).With(price.Override{Model: "azure-eu/gpt-4o-mini", Price: mustNew(t, price.Terms{})})
	for _, c := range []struct{ provider, name, want string }{
		{"azure-eu", "GPT-4o", "openai/gpt-4o"},
		{"azure-eu", "gpt-4o-mini", "/azure-eu/gpt-4o-mini"},
		{"openai", "gpt-4o-mini", "openai/gpt-4o-mini"},
		{"google", "models/gemini-2.5-pro", "google/gemini-2.5-pro"},
		{"cloud", "publishers/google/models/gemini-2.5-pro", "google/gemini-2.5-pro"},
		{"aws", "amazon.nova-pro-v1:0", "aws/amazon.nova-pro-v1:0"},
		{"deepseek", "deepseek-chat", "deepseek/deepseek-chat"},
		{"own", "gpt-4o", "/"},
	} {
		if e, _ := table.Find(c.provider, c.name, today); e.Provider+"/"+e.Model != c.want {
			t.Errorf("%s of %s is %s/%s, want %s", c.name, c.provider, e.Provider, e.Model, c.want)
		}
	}
}

// Clients that make up names cannot fill the memory, and each finds its price.
func TestManyNames(t *testing.T) {
	table := price.Known().With(price.Override{Model: "mine-*", Price: mustNew(t, price.Terms{})})
	for i := range 10_000 {
		if _, ok := table.Of("local", fmt.Sprint("mine-", i), today); !ok {
			t.Fatal(i)
		}
	}
	if n := price.Remembered(table); n > 4096 {
		t.Errorf("the table remembers %d names", n)
	}
}

// Every price is written as JSON that reads as the same price.
func TestPriceJSON(t *testing.T) {
	prices := []*price.Price{mustNew(t, price.Terms{
		Rates:    price.Rates{Input: 1, CachedInput: price.Free, Request: 5},
		Above:    []price.Above{{Tokens: 1, Rates: price.Rates{Input: 2}}, {Tokens: 2, Rates: price.Rates{Input: 3}}},
		Batch:    price.Service{Percent: 50},
		Priority: price.Service{Rates: price.Rates{Output: 7}, Above: []price.Above{{Tokens: 9}}},
	})}
	for e := range price.Known().All() {
		prices = append(prices, e.Price)
	}
	for _, want := range prices {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got price.Price
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again, _ := json.Marshal(&got); string(again) != string(text) {
			t.Errorf("%s is read as %s", text, again)
		}
	}
	for _, bad := range []string{`{"inputs":1}`, `{"input":-1}`, `{"input":"1"}`, `{"batch":"half"}`, `{"batch":"0.5%"}`, `{"from":"soon"}`, `{"above":{"input":1}}`, `[]`, `{"input":1e3}`} {
		if err := json.Unmarshal([]byte(bad), new(price.Price)); err == nil {
			t.Errorf("%s is a price", bad)
		}
	}
}

// What nobody can mean is refused, with what is allowed.
func TestNewRefuses(t *testing.T) {
	date := func(day int) time.Time { return time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC) }
	for want, terms := range map[string][]price.Terms{
		"a price needs terms": nil,
		"input is -$0.000000002 for a million tokens: it must be from $0 to $100,000.00":                       {{Rates: price.Rates{Input: -2}}},
		"output is $100,000.000000001 for a million tokens: it must be from $0 to $100,000.00":                 {{Rates: price.Rates{Output: price.MaxRate + 1}}},
		"request is -$0.000000001: it must be from $0 to $100,000.00":                                          {{Rates: price.Rates{Request: -1}}},
		"prices above 0 tokens: the number must be more than 0 and ascend":                                     {{Above: []price.Above{{}}}},
		"prices above 5 tokens: the number must be more than 0 and ascend":                                     {{Above: []price.Above{{Tokens: 5}, {Tokens: 5}}}},
		"1001% of the usual price: it must be from 1% to 1000%, in the tier batch":                             {{Batch: price.Service{Percent: 1001}}},
		"a percentage of the usual prices, and prices: it must be one of them, in the tier flex":               {{Flex: price.Service{Percent: 1, Rates: price.Rates{Input: 1}}}},
		"input is -$0.000000002 for a million tokens: it must be from $0 to $100,000.00, in the tier priority": {{Priority: price.Service{Rates: price.Rates{Input: -2}}}},
		"prices from 2026-01-01 come after prices from 2026-01-02: dates must ascend":                          {{From: date(2)}, {From: date(1)}},
		"prices from the beginning come after prices from the beginning: dates must ascend":                    {{}, {}},
	} {
		if _, err := price.New(terms...); err == nil || err.Error() != "ratelimit: "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Calls at the prices that the providers' pages have. The call of Sonnet is the example of the data
// set's own manual. TestExamplesOfProviders has those that providers work out themselves.
func TestPublishedPrices(t *testing.T) {
	for name, c := range map[string]struct {
		provider, model string
		usage           llm.Usage
		want            string
	}{
		"a batch":                    {"anthropic", "claude-opus-4-7", llm.Usage{Input: 1_000_000, Output: 1_000_000, Tier: "batch"}, "15.00"},
		"the data set's own":         {"anthropic", "claude-sonnet-4-20250514", llm.Usage{Input: 4740, CacheWrite: 4735, Output: 255}, "0.02159625"},
		"an hour in the cache":       {"anthropic", "claude-opus-5-5", llm.Usage{Input: 1_000_000, CacheWrite: 1_000_000, CacheWriteHour: 1_000_000}, "8.00"},
		"OpenAI's priority":          {"openai", "gpt-5.4", llm.Usage{Input: 100_000, Cached: 50_000, Output: 1_000_000, Tier: "priority"}, "30.275"},
		"OpenAI's priority, GPT-5.5": {"openai", "gpt-5.5", llm.Usage{Input: 100_000, Output: 1_000_000, Tier: "priority"}, "76.25"},
		"a prompt of 272,000":        {"openai", "gpt-5.4", llm.Usage{Input: 272_000, Output: 1000}, "1.3825"},
		"a prompt of 271,999":        {"openai", "gpt-5.4", llm.Usage{Input: 271_999, Output: 1000}, "0.6949975"},
		"Gemini, a long prompt":      {"gemini", "gemini-2.5-pro", llm.Usage{Input: 200_001, Output: 1000}, "0.5150025"},
		"Gemini, thoughts":           {"gemini", "gemini-2.5-pro", llm.Usage{Input: 1000, Output: 3000, Reasoning: 2900}, "0.03125"},
		"Gemini, audio":              {"gemini", "gemini-2.5-flash", llm.Usage{Input: 1000, InputAudio: 600, Output: 10}, "0.000745"},
		"Perplexity, a request":      {"perplexity", "sonar", llm.Usage{Input: 1000, Output: 500}, "0.0135"},
	} {
		p, ok := price.Known().Of(c.provider, c.model, today)
		if !ok {
			t.Errorf("%s: no price", name)
			continue
		}
		if got, lines := cost(t, p, c.usage, today); got.Decimal() != c.want {
			t.Errorf("%s: it costs %s, want %s: %+v", name, got.Decimal(), c.want, lines)
		}
	}
}

// Opus 4.6 had dearer long prompts until 13 March 2026.
func TestDatesOfTheTable(t *testing.T) {
	p, ok := price.Known().Of("anthropic", "claude-opus-4-6", today)
	if !ok {
		t.Fatal("no price")
	}
	change := time.Date(2026, 3, 13, 0, 0, 0, 0, time.UTC)
	u := llm.Usage{Input: 300_000}
	if before, after := p.Total(u, change.Add(-time.Nanosecond)), p.Total(u, change); before != 3*price.Dollar || after != 3*price.Dollar/2 {
		t.Errorf("300,000 tokens cost %v, and then %v", before, after)
	}
}

// Names of providers and models never panic, and agree with themselves.
func FuzzFind(f *testing.F) {
	for _, name := range []string{"gpt-4o", "us.anthropic.claude-opus-4-6-v1:0", "*", "#", "models/", "arn:", ""} {
		f.Add("openai", name)
		f.Add("bedrock", name)
	}
	table := price.Known().With(price.Override{Model: "a*b*c#", Price: mustNew(f, price.Terms{})})
	f.Fuzz(func(t *testing.T, provider, name string) {
		a, ok := table.Find(provider, name, today)
		b, again := table.Find(provider, name, today)
		if a != b || ok != again || ok && a.Price.Most(math.MaxInt, math.MaxInt, "", today) < 0 {
			t.Fatalf("%+v, then %+v", a, b)
		}
	})
}

func TestAllEnds(t *testing.T) {
	table := price.Known().With(price.Override{Model: "mine", Price: mustNew(t, price.Terms{})})
	for e := range table.All() {
		if e.Model != "mine" || e.Provider != "" {
			t.Errorf("the first is %+v", e)
		}
		break
	}
	all := slices.Collect(table.All())
	if n := len(slices.Collect(price.Known().All())); len(all) != n+1 {
		t.Errorf("%d entries, want one more than %d", len(all), n)
	}
}
