package counts

import (
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/llm"
)

// outcomes are the kinds of events that are decisions.
var outcomes = [...]event.Kind{event.Admitted, event.Denied, event.Refused, event.Left, event.Lost}

// IsDecision reports whether events of a kind are decisions.
func IsDecision(kind event.Kind) bool { return outcomeOf(kind) >= 0 }

// outcomeOf returns the index of a kind in outcomes, or -1 for events that are no decision.
func outcomeOf(kind event.Kind) int { return slices.Index(outcomes[:], kind) }

// waited reports whether a decision counts in the histogram of waits: every admitted call does, and
// one that was denied or left if it has waited in vain.
func waited(e *event.Event) bool {
	return e.Kind == event.Admitted || e.Waited > 0 && (e.Kind == event.Denied || e.Kind == event.Left)
}

// other stands for all names without series of their own.
const other = "other"

// limits are the names of limits that an event may have. The first stands for no limit, and the last for all others.
var limits = slices.Concat([]string{"", "paused"}, kind.Names(), []string{other})

// limitIndexes has the index of each limit.
var limitIndexes = func() map[string]int {
	indexes := map[string]int{}
	for i, name := range limits {
		indexes[name] = i
	}
	return indexes
}()

// limitIndex returns the index of the limit with a name.
func limitIndex(name string) int {
	if i, ok := limitIndexes[name]; ok {
		return i
	}
	return len(limits) - 1
}

// causes are why providers throttle calls.
var causes = [...]llm.Cause{llm.RateLimited, llm.DayLimited, llm.SpendCap, llm.Overloaded, other}

// causeLabel returns a cause as the value of a label: one of causes.
func causeLabel(c llm.Cause) string {
	return strings.ReplaceAll(string(causes[indexOf(causes[:], c)]), " ", "_")
}

// indexOf returns the index of a name, or that of the last one, which stands for all unknown names.
func indexOf[T comparable](names []T, name T) int {
	if i := slices.Index(names, name); i >= 0 {
		return i
	}
	return len(names) - 1
}
