package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/internal/kind"
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
	for _, k := range kind.Of(kind.Project) {
		usage := fmt.Sprintf("how many %s the key may use %s (default: any)", k.Unit().Words(), k.Window().Any())
		switch to := limitFields.In(l, k).Addr().Interface().(type) {
		case *int:
			c.Flags().IntVar(to, k.Flag(), 0, usage)
		case *price.Amount:
			c.Flags().Var((*money)(to), k.Flag(), usage)
		}
	}
	c.Flags().StringVar((*string)(&l.Reserve), "reserve", "", "what its calls reserve of tokens and dollars: most or expected (default: most of dollars, expected of tokens)")
	c.Flags().StringVar((*string)(&l.OnOverrun), "on-overrun", "", "what becomes of a stream that uses more than it has reserved: debt or cut (default: debt)")
}
