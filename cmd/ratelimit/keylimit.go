package main

import (
	"strings"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// money is a flag with an amount of dollars, such as 2.50 or 5_000.
type money price.Amount

func (m *money) Set(text string) error {
	n, err := price.Parse(strings.ReplaceAll(text, "_", ""))
	*m = money(n)
	return err
}

func (m *money) String() string {
	if *m == 0 {
		return "" // so that the help shows no default
	}
	return price.Amount(*m).Decimal()
}

func (m *money) Type() string { return "dollars" }

// limitFlags adds the flags of a key's limit.
func limitFlags(c *cobra.Command, l *project.Limit) {
	for _, f := range []struct {
		to         *int
		name, what string
	}{
		{&l.RequestsPerMinute, "requests-per-minute", "requests in any minute"},
		{&l.RequestsPerHour, "requests-per-hour", "requests in any hour"},
		{&l.RequestsPerDay, "requests-per-day", "requests in any 24 hours"},
		{&l.TokensPerMinute, "tokens-per-minute", "tokens in any minute"},
		{&l.TokensPerHour, "tokens-per-hour", "tokens in any hour"},
		{&l.TokensPerDay, "tokens-per-day", "tokens in any 24 hours"},
		{&l.TokensPerMonth, "tokens-per-month", "tokens in any 30 days"},
		{&l.MaxConcurrent, "max-concurrent", "calls at a time"},
	} {
		c.Flags().IntVar(f.to, f.name, 0, "how many "+f.what+" the key may use (default: any)")
	}
	for _, f := range []struct {
		to         *price.Amount
		name, what string
	}{
		{&l.DollarsPerHour, "dollars-per-hour", "in any hour"},
		{&l.DollarsPerDay, "dollars-per-day", "in any 24 hours"},
		{&l.DollarsPerWeek, "dollars-per-week", "in any 7 days"},
		{&l.DollarsPerMonth, "dollars-per-month", "in any 30 days"},
		{&l.Dollars, "dollars", "in total"},
	} {
		c.Flags().Var((*money)(f.to), f.name, "how many dollars the key may use "+f.what+" (default: any)")
	}
	c.Flags().StringVar((*string)(&l.Reserve), "reserve", "", "what its calls reserve of tokens and dollars: most or expected (default: most of dollars, expected of tokens)")
	c.Flags().StringVar((*string)(&l.OnOverrun), "on-overrun", "", "what becomes of a stream that uses more than it has reserved: debt or cut (default: debt)")
}
