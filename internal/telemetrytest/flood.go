package telemetrytest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// Limits are the limits that an event may name. The first is no limit.
var Limits = append([]string{"", "paused"}, kind.Names()...)

// The largest numbers of values that the labels of metrics can have in a flood.
const (
	Models   = 10 // models with values of their own
	Outcomes = 5
	Shadows  = 2
	Causes   = 5
	Types    = 2 // types of tokens
	Modes    = 3 // loss modes
	Owners   = 3 // of budgets
	Percents = 2 // thresholds of budgets
)

// Projects are the projects that have label values of their own in a flood.
var Projects = []string{"acme", "initech"}

// MostSeries returns the largest number of series. For each pair of a model and a project these are its decisions, the
// tokens of two types that were used, the tokens that were estimated, those that were compared with an estimate, the
// cancelled calls, and the dollars of used and denied calls. For each model they are three histograms of waits and one
// of errors, its throttled calls, and how often each limit was lowered and learned. The store has eleven. Thresholds
// have one for each project, owner, limit and percent, and one if they are missed.
func MostSeries() int {
	models, projects, limits := Models+2, len(Projects)+2, len(Limits)+1 // also no name, and "other" for all names beyond these
	return models*projects*(Outcomes*limits*Shadows+7) + models*(4+Causes+2*limits) + 11 + projects*Owners*limits*Percents + 1
}

// Flood passes a number of random events to an observer, four at a time.
func Flood(t *testing.T, o event.Observer, events int) {
	t.Helper()
	var all sync.WaitGroup
	for seed := range uint64(4) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, 4))
			for range events / 4 {
				o.Observe(t.Context(), randomEvent(random))
			}
		})
	}
	all.Wait()
}

var (
	limits = append(slices.Clone(Limits), "other")
	kinds  = []event.Kind{event.Admitted, event.Denied, event.Left, event.Lost,
		event.Settled, event.Cancelled, event.Store, event.Paused, event.Lowered, event.Learned, event.Threshold, "made up"}
	storeKinds = []store.EventKind{store.Lost, store.Decided, store.Back, store.Reconciled, "made up"}
	modes      = []redisstore.StoreLoss{redisstore.Deny, redisstore.Allow, redisstore.Share, "made up"}
)

func randomEvent(random *rand.Rand) event.Event {
	e := event.Event{
		Kind:            kinds[random.IntN(len(kinds))],
		Project:         randomName(random, "acme", "initech"),
		Model:           randomName(random, "gpt-4o", "other"),
		Limited:         random.IntN(2) == 0,
		Limit:           randomName(random, limits...),
		RemainingMinute: random.Int64N(100) - 1,
		Waited:          time.Duration(random.Int64()),
		Shadow:          random.IntN(2) == 0,
		Estimated:       random.Int64() - random.Int64(),
		Dollars:         price.Amount(random.Int64() - random.Int64()),
		Used: ratelimit.Tokens{
			Input: random.Int() - random.Int(), Output: random.Int() - random.Int(),
			FreeInput: random.Int() - random.Int(), FreeOutput: random.Int() - random.Int(),
		},
		Cause: llm.Cause(randomName(random, string(llm.RateLimited), string(llm.DayLimited), string(llm.SpendCap), string(llm.Overloaded))),
	}
	if random.IntN(4) == 0 {
		e.RetryAfter = ratelimit.Never
	}
	if e.Kind == event.Store && random.IntN(10) > 0 {
		e.Store = &store.Event{
			Kind: storeKinds[random.IntN(len(storeKinds))], Mode: modes[random.IntN(len(modes))],
			Group: random.Int() - random.Int(), Allowed: random.Int64(), Denied: -random.Int64(), Keys: random.Int(), Missed: random.Int(),
		}
	}
	if e.Kind == event.Threshold && random.IntN(10) > 0 {
		e.Budget = &event.Budget{Owner: randomName(random, "acme", "key a", "run b"), Percent: 50 * (1 + random.IntN(Percents))}
	}
	return e
}

// randomName returns one of the names, or an empty one, or anything that a client may send.
func randomName(random *rand.Rand, names ...string) string {
	switch random.IntN(5) {
	case 0:
		return ""
	case 1:
		return "\xff" + strconv.Itoa(random.Int())
	case 2:
		return strconv.Itoa(random.Int())
	default:
		return names[random.IntN(len(names))]
	}
}

// Values are the values that each label has in any series.
type Values map[string]map[string]bool

// Add adds a value of a label.
func (v Values) Add(label, value string) {
	if v[label] == nil {
		v[label] = map[string]bool{}
	}
	v[label][value] = true
}

// Check fails the test if a label has more values than it may have, or a value that is not valid text.
// It also fails if a label has only one value, since a flood gives each label several.
func (v Values) Check(t *testing.T, most map[string]int) {
	t.Helper()
	for label, of := range v {
		if len(of) > most[label] || len(of) < 2 {
			t.Errorf("the label %s has %d values, want 2 to %d", label, len(of), most[label])
		}
		for value := range of {
			if strings.ContainsRune(value, '\uFFFD') || strings.Contains(value, "\xff") {
				t.Errorf("the label %s has the value %q", label, value)
			}
		}
	}
}
