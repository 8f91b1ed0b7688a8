package scenarios

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// longAnswers are bursts of calls whose answers are as long as they may be, after twenty short ones.
var longAnswers = []struct {
	name   string
	in     string // the dialect
	kind   string
	amount int64
	calls  int
	text   string
	tokens func(string) int
	most   int
}{
	{"a dollar a day", "anthropic", "day", nanosDollar, 60, "Hello!", nil, 8192},
	{"a dollar a day, a thousand calls", "anthropic", "day", nanosDollar, 1000, "Hello!", nil, 8192},
	{"a dollar a day", "groq", "day", nanosDollar, 60, "Hello!", nil, 8192},
	{"a dollar a day", "mistral", "day", nanosDollar, 60, "Hello!", nil, 8192},
	{"a dollar a day", "openrouter", "day", nanosDollar, 60, "Hello!", nil, 8192},
	{"a dollar a day", "compatible", "day", nanosDollar, 60, "Hello!", nil, 8192},
	{"70,000 tokens a minute", "anthropic", "most", 70_000, 1000, "Hello!", nil, 8192},
	{"a run", "anthropic", "run", runBudget, 60, "Hello!", nil, 8192},
	{"no max_tokens", "openai", "day", nanosDollar, 60, "Hello!", nil, 0},
	{"a prompt of 7,000 tokens", "openai", "day", nanosDollar, 60, strings.Repeat("some", 7000), nil, 8192},
	{"a prompt of 7,000 tokens of digits", "openai", "day", nanosDollar, 60, strings.Repeat("271", 7000), func(text string) int { return (len(text) + 2) / 3 }, 2048},
	{"max_tokens, and a short prompt", "openai", "day", nanosDollar, 1000, "Hello!", nil, 8192},
}

// Answers that are as long as their calls allow spend no more than the limit, after the estimator has seen short ones.
func TestLongAnswersStayWithinLimits(t *testing.T) {
	d := newDoor(t)
	budgets := make([]*budget, len(longAnswers))
	for i, row := range longAnswers {
		b := &budget{dialect: dialectNamed(row.in), kind: kindNamed(row.kind), amount: row.amount, wait: "0s"}
		b.name = "row" + string(rune('a'+i))
		if row.kind == "run" {
			b.run = b.name
		}
		budgets[i] = b
	}
	at := []*gatewayURLs{d.inFront(t, budgets)}
	for i, row := range longAnswers {
		t.Run(row.name+", "+row.in, func(t *testing.T) {
			d.teach(t, budgets[i], at)
			plans := make([]*plan, min(row.calls, testkit.Rounds(150, many)))
			for j := range plans {
				plans[j] = &plan{budget: budgets[i], answers: 1, text: row.text, tokens: row.tokens, most: row.most, permille: 1000}
				if row.tokens == nil {
					plans[j].tokens = tokenizers[2]
				}
			}
			d.burst(t, plans, true, at).wait(t)
			d.check(t, budgets[i])
		})
	}
}

func dialectNamed(name string) *wireForm {
	for i := range dialects {
		if dialects[i].name == name {
			return &dialects[i]
		}
	}
	panic("there is no dialect " + name)
}

func kindNamed(name string) *limitKind {
	for i := range limitKinds {
		if limitKinds[i].name == name {
			return &limitKinds[i]
		}
	}
	panic("there is no kind of limit " + name)
}
