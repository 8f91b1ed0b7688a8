package main

import (
	"encoding/json"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/price"
)

const script = "const E = [\n {id: \"p\", \"description\": `it's \"quoted\"`, on: !0, off: !1, models: [{id: \"M\", match: {or: [{equals: \"m\"}, " +
	"{regex: \"^m-\\\\d{2}\\\\.\\\\d$\"}, {starts_with: \"mm\"}]}, prices: {input_mtok: {base: .5, tiers: [{start: 2e5, price: 1}]}, web_searches_kcount: 10}}]}\n], J = {a: b}"

// Literals are read, and nothing is run.
func TestConvert(t *testing.T) {
	data, err := parseFirst(script, "[")
	if err != nil {
		t.Fatal(err)
	}
	order = []string{"p"}
	providers, err := convert(data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(providers)
	want := `[{"id":"p","models":[{"id":"m","match":["m-##.#","mm*"],"price":{"input":0.50,"web_searches":10.00,"above":{"tokens":200000,"input":1.00}}}]}]`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}

func TestLiteralsThatAreNone(t *testing.T) {
	for _, text := range []string{"", "[", "[run()]", "[{a: b}]", "[{a 1}]", "[1 2]", "[!2]", `["x]`, "[{: 1}]", `["\q"]`} {
		if v, err := parseFirst(text, "["); err == nil {
			t.Errorf("%s is %v", text, v)
		}
	}
}

// What the data set has and the table does not know stops the program: it must not be left out silently.
func TestUnknownRules(t *testing.T) {
	for _, change := range [][2]string{
		{"input_mtok", "input_dreams_mtok"}, {"^m-", "^(m|n)-"}, {"base: .5", "base: -1"}, {"base: .5", "base: 1e9"},
	} {
		data, err := parseFirst(strings.Replace(script, change[0], change[1], 1), "[")
		if err != nil {
			t.Fatal(err)
		}
		order = []string{"p"}
		if _, err := convert(data); err == nil {
			t.Errorf("%s passes", change[1])
		}
	}
}

func TestDollars(t *testing.T) {
	for text, want := range map[json.Number]price.Amount{
		"0.18000000000000002": 180_000_000, "0.08333333333333334": 83_333_334, "2.5": 2_500_000_000, "5e-3": 5_000_000,
	} {
		if got, err := dollars(text); err != nil || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, err, want)
		}
	}
}
