package reconcile

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
)

// A fault changes a line of a bill, and is to be found as a difference of a kind. A line whose model is new is added.
type fault struct {
	kind  Kind
	model string // with which the difference is found; "-": that of the line
	plant func(l *mockprovider.BillLine)
}

// faults has those of each provider: twenty in all.
var faults = map[string][]fault{
	"openai": {
		{PastGateway, "-", func(l *mockprovider.BillLine) { l.Requests, l.Input, l.Output = l.Requests+3, l.Input+30, l.Output+9 }},
		{PastGateway, "gpt-unseen", func(l *mockprovider.BillLine) { l.Model = "gpt-unseen" }},
		{Unbilled, "-", func(l *mockprovider.BillLine) { l.Requests, l.Input = l.Requests-2, l.Input-100 }},
		{Estimated, "-", func(l *mockprovider.BillLine) { l.Output += 10 }},
		{Estimated, "-", func(l *mockprovider.BillLine) { l.Input -= 5 }},
		{Price, "-", func(l *mockprovider.BillLine) { l.Nanodollars += l.Nanodollars / 10 }},
		{Tool, "", func(l *mockprovider.BillLine) { l.Model, l.Requests, l.Nanodollars = "", 0, 50_000_000 }},
	},
	"anthropic": {
		{PastGateway, "-", func(l *mockprovider.BillLine) { l.Input, l.Output = l.Input+30, l.Output+9 }},
		{PastGateway, "claude-unseen", func(l *mockprovider.BillLine) { l.Model = "claude-unseen" }},
		{Unbilled, "-", func(l *mockprovider.BillLine) { *l = mockprovider.BillLine{Day: l.Day, Model: l.Model} }},
		{Estimated, "-", func(l *mockprovider.BillLine) { l.Output++ }},
		{Tool, "-", func(l *mockprovider.BillLine) { l.Units[llm.WebSearches] += 2 }},
		{Price, "-", func(l *mockprovider.BillLine) { l.Nanodollars /= 2 }},
		{Tool, "", func(l *mockprovider.BillLine) { l.Model, l.Input, l.Output, l.Nanodollars = "", 0, 0, 10_000_000 }},
	},
	"openrouter": {
		{PastGateway, "-", func(l *mockprovider.BillLine) { l.Requests++ }},
		{PastGateway, "maker/unseen", func(l *mockprovider.BillLine) { l.Model = "maker/unseen" }},
		{Unbilled, "-", func(l *mockprovider.BillLine) { l.Requests-- }},
		{Estimated, "-", func(l *mockprovider.BillLine) { l.Input += 7 }},
		{Price, "-", func(l *mockprovider.BillLine) { l.Nanodollars += 1_000_000 }},
		{Price, "-", func(l *mockprovider.BillLine) { l.Nanodollars -= 1_000_000 }},
	},
}

const (
	testDays   = 8
	testModels = 3
)

var firstDay = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// manyCalls returns the books and the bill of many calls. The books round the price of some calls up.
func manyCalls(seed uint64, calls int) (books []Line, bill []mockprovider.BillLine) {
	random := rand.New(rand.NewPCG(seed, 1))
	books, bill = make([]Line, testDays*testModels), make([]mockprovider.BillLine, testDays*testModels)
	for i := range books {
		day := firstDay.AddDate(0, 0, i/testModels)
		books[i].Day, books[i].Model = day.Format(time.DateOnly), fmt.Sprintf("m%d", i%testModels)
		bill[i].Day, bill[i].Model, bill[i].Key = day, books[i].Model, "key_1"
	}
	for range calls {
		i, input, output := random.IntN(len(books)), random.Int64N(5000)+1, random.Int64N(2000)+1
		cost := input*2_500 + output*10_000
		b, p := &books[i], &bill[i]
		b.Requests, b.Input, b.Output, b.Nanodollars = b.Requests+1, b.Input+input, b.Output+output, b.Nanodollars+cost+random.Int64N(2)
		p.Requests, p.Input, p.Output, p.Nanodollars = p.Requests+1, p.Input+input, p.Output+output, p.Nanodollars+cost
	}
	return books, bill
}

// differences reads a bill from the mock, page by page, and compares it with the books.
func differences(t *testing.T, provider string, books []Line, bill []mockprovider.BillLine, keys ...string) []Difference {
	t.Helper()
	server := httptest.NewServer(mockprovider.New(mockprovider.Config{Bill: func() []mockprovider.BillLine { return bill }}))
	defer server.Close()
	source := Source{Provider: provider, BaseURL: server.URL, Key: "admin", Keys: keys, Since: firstDay, Until: firstDay.AddDate(0, 0, testDays)}
	read, err := source.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return Compare(books, read, func(model string) string { return model })
}

// Of twenty faults in the bills of three providers each is found, with its reason, and nothing else.
func TestEachPlantedFaultIsFound(t *testing.T) {
	planted := 0
	for provider, list := range faults {
		books, bill := manyCalls(7, 20_000)
		var want []string
		for i, f := range list {
			line := &bill[i*testModels+i%testModels] // another day each
			before := *line
			f.plant(line)
			model := line.Model
			if model != before.Model {
				bill = append(bill, before)
			}
			if f.model != "-" {
				model = f.model
			}
			want = append(want, fmt.Sprint(before.Day.Format(time.DateOnly), " ", model, " ", f.kind))
			planted++
		}
		var got []string
		for _, d := range differences(t, provider, books, bill) {
			got = append(got, fmt.Sprint(d.Day, " ", d.Model, " ", d.Kind))
		}
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s: found\n%s\nwant\n%s", provider, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if planted != 20 {
		t.Errorf("%d faults were planted", planted)
	}
}

// The bill of 100,000 calls that has no fault is that of the books.
func TestNoFaultIsInvented(t *testing.T) {
	for _, provider := range Providers() {
		books, bill := manyCalls(8, 100_000)
		if found := differences(t, provider, books, bill); len(found) > 0 {
			t.Errorf("%s: %v", provider, found)
		}
	}
}

// What cannot be read is an error that says so, and never a bill without anything on it.
func TestBillsThatCannotBeRead(t *testing.T) {
	server := httptest.NewServer(mockprovider.New(mockprovider.Config{Bill: func() []mockprovider.BillLine { return nil }}))
	defer server.Close()
	for _, s := range []Source{
		{Provider: "openai", BaseURL: server.URL, Key: "not an administrator's"}, {Provider: "anthropic", BaseURL: "http://127.0.0.1:1", Key: "admin"},
		{Provider: "nobody", BaseURL: server.URL, Key: "admin"}, {Provider: "openrouter", BaseURL: server.URL + "/elsewhere", Key: "admin"},
	} {
		if b, err := s.Read(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
			t.Errorf("%s: %v, %v", s.Provider, b, err)
		}
	}
	for _, text := range []string{"", "1/3", "0x10", "1e999", "NaN", "$1"} {
		if n, err := nanodollars(text, 1); err == nil {
			t.Errorf("%q is %d", text, n)
		}
	}
	if n, err := nanodollars("123.45678", 100); n != 1_234_567_800 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// Media and containers are compared in their units, and tokens that a bill does not have of them are not. A key that the
// gateway does not have is named, and what it has used is no fault of the books.
func TestUnitsAndKeysAreCompared(t *testing.T) {
	day := firstDay.Format(time.DateOnly)
	units := map[string]llm.Units{"dall-e-3": {llm.Images: 4}, "gpt-image-1": {llm.Images: 2}, "tts-1": {llm.Characters: 900}, "whisper-1": {llm.AudioSeconds: 61}}
	for _, c := range []struct {
		name  string
		keys  []string
		plant func(l *mockprovider.BillLine)
		want  string
	}{
		{"nothing", nil, func(*mockprovider.BillLine) {}, "[]"},
		{"the gateway's own key", []string{"key_0", "key_1"}, func(*mockprovider.BillLine) {}, "[]"},
		{"an image", nil, func(l *mockprovider.BillLine) { l.Units[llm.Images] += l.Units[llm.Images] / 4 }, "[dall-e-3 tool not counted the gateway has 4 images, the bill 5]"},
		{"speech", nil, func(l *mockprovider.BillLine) { l.Units[llm.Characters] /= 9 }, "[tts-1 tool not counted the gateway has 900 characters, the bill 100]"},
		{"audio", nil, func(l *mockprovider.BillLine) { l.Units[llm.AudioSeconds] -= l.Units[llm.AudioSeconds] % 2 }, "[whisper-1 tool not counted the gateway has 61 seconds of audio, the bill 60]"},
		{"a container", nil, func(l *mockprovider.BillLine) { l.Units[llm.Containers] *= 2 }, "[ tool not counted the gateway has 3 containers, the bill 6]"},
		{"searches", nil, func(l *mockprovider.BillLine) { l.Units[llm.WebSearches] *= 2 }, "[gpt-5.4 tool not counted the gateway has 2 searches, the bill 4]"},
		{"searches of files", nil, func(l *mockprovider.BillLine) { l.Units[llm.FileSearches] /= 2 }, "[ tool not counted the gateway has 4 searches of files, the bill 2]"},
		{"another key", []string{"key_1"}, func(l *mockprovider.BillLine) {
			if l.Model == "gpt-5.4" {
				l.Key, l.Requests = "key_2", 9
			}
		}, "[ tool not counted the gateway has 4 searches of files, the bill 0 gpt-5.4 not billed the gateway has 1 requests, the bill 0 gpt-5.4 past the gateway the key key_2 has made 9 requests gpt-5.4 tool not counted the gateway has 2 searches, the bill 0]"},
	} {
		books := []Line{{Day: day, Model: "gpt-5.4", Requests: 1, Input: 5, Output: 5, Units: llm.Units{llm.Containers: 3, llm.WebSearches: 2, llm.FileSearches: 4}, Nanodollars: 100_000_000}}
		bill := []mockprovider.BillLine{{Day: firstDay, Model: "gpt-5.4", Key: "key_1", Requests: 1, Input: 5, Output: 5, Units: llm.Units{llm.WebSearches: 2, llm.FileSearches: 4}, Nanodollars: 10_000_000}, {Day: firstDay, Units: llm.Units{llm.Containers: 3}, Nanodollars: 90_000_000}}
		for model, u := range units {
			books = append(books, Line{Day: day, Model: model, Requests: 2, Input: int64(len(model) % 2), Units: u, Nanodollars: 50_000_000})
			bill = append(bill, mockprovider.BillLine{Day: firstDay, Model: model, Key: "key_1", Requests: 2, Units: u, Nanodollars: 50_000_000})
		}
		for i := range bill {
			c.plant(&bill[i])
		}
		var got []string
		for _, d := range differences(t, "openai", books, bill, c.keys...) {
			got = append(got, fmt.Sprint(d.Model, " ", d.Kind, " ", d))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: found\n%v, want\n%s", c.name, got, c.want)
		}
	}
}

// The dollars of a key that the gateway does not have are no part of the gap, if the provider says what each key has cost.
func TestGapOfKeys(t *testing.T) {
	books := []Line{{Day: "2026-11-01", Nanodollars: 100}}
	bill := Bill{Keys: []string{"own"}, CostsByKey: true, Lines: []Line{{Day: "2026-11-01", Key: "own", Nanodollars: 90}, {Day: "2026-11-01", Key: "other", Nanodollars: 70}}}
	if g := GapOf(books, bill); g != (Gap{Bill: 90, Off: 10}) {
		t.Errorf("%+v", g)
	}
	bill.Keys = nil
	if g := GapOf(books, bill); g != (Gap{Bill: 160, Off: 60}) {
		t.Errorf("%+v", g)
	}
}
