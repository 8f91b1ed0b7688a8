package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

const (
	window  = time.Minute
	stagger = time.Millisecond // between clients, and between workers, that would begin at the same time
)

// load is what clients want of one model, for a number of windows.
type load struct {
	name, about string
	unit        string // of the quota: requests or tokens
	quota       int    // what any window may hold
	windows     int
	answer      time.Duration // how long an admitted call takes
	clients     []client
	latecomer   int // the index of the client that comes late; 0: none
}

// client makes calls in one of two ways: its workers call again after each answer, or its calls
// arrive by themselves, whatever becomes of the earlier ones.
type client struct {
	name   string
	weight int

	workers int
	cost    int           // of each call of a worker
	pause   time.Duration // of a worker, after an answer
	from    time.Duration // when the workers begin

	arrivals []arrival
}

// arrival is a call that comes by itself.
type arrival struct {
	at   time.Duration
	cost int
}

func (l *load) length() time.Duration { return time.Duration(l.windows) * window }

// largest is the cost of the client's largest call.
func (c *client) largest() int {
	most := c.cost
	for _, a := range c.arrivals {
		most = max(most, a.cost)
	}
	return most
}

func (l *load) weights() (sum int) {
	for _, c := range l.clients {
		sum += c.weight
	}
	return sum
}

// offered is the cost of all calls, and whether there is an end to them: workers always come back.
func (l *load) offered() (cost int, finite bool) {
	finite = true
	for _, c := range l.clients {
		finite = finite && c.workers == 0
		for _, a := range c.arrivals {
			cost += a.cost
		}
	}
	return cost, finite
}

// loads are all there are. The first three are of users; the others are shaped after the
// experiments of the paper on the virtual token counter (Sheng et al., OSDI '24): rates, phases and
// sizes are those of its published code, but for the rates of equal; the quota stands for the capacity
// of its server.
func loads() []load {
	return []load{
		{
			name: "hog", unit: "requests", quota: 60, windows: 10, answer: 200 * time.Millisecond,
			about: "weights 3, 2 and 1; batch has 20 workers that never pause, the others 3 and 2 that pause for 0.5 s",
			clients: []client{
				{name: "search", weight: 3, workers: 3, cost: 1, pause: 500 * time.Millisecond},
				{name: "chat", weight: 2, workers: 2, cost: 1, pause: 500 * time.Millisecond},
				{name: "batch", weight: 1, workers: 20, cost: 1},
			},
		},
		{
			name: "sizes", unit: "tokens", quota: 100_000, windows: 10, answer: 200 * time.Millisecond,
			about: "equal weights, 10 workers each; calls of 8,000 and of 2,000 tokens",
			clients: []client{
				{name: "large", weight: 1, workers: 10, cost: 8000},
				{name: "small", weight: 1, workers: 10, cost: 2000},
			},
		},
		{
			name: "latecomer", unit: "requests", quota: 60, windows: 10, answer: 200 * time.Millisecond, latecomer: 1,
			about: "equal weights; the latecomer's 2 workers, which pause for 0.5 s, come 90 s after the hog's 20, which never pause",
			clients: []client{
				{name: "hog", weight: 1, workers: 20, cost: 1},
				{name: "latecomer", weight: 1, workers: 2, cost: 1, pause: 500 * time.Millisecond, from: 90 * time.Second},
			},
		},
		paper("equal", "two clients, 120 calls a minute each: both over their shares of 40",
			client{name: "one", arrivals: steady(120, 512)},
			client{name: "two", arrivals: steady(120, 512)}),
		paper("unequal", "two clients, 90 and 180 calls a minute: both over their shares of 40",
			client{name: "rate-90", arrivals: steady(90, 512)},
			client{name: "rate-180", arrivals: steady(180, 512)}),
		paper("below", "three clients, 15, 30 and 90 calls a minute: the third may use what the others leave",
			client{name: "rate-15", arrivals: steady(15, 512)},
			client{name: "rate-30", arrivals: steady(30, 512)},
			client{name: "rate-90", arrivals: steady(90, 512)}),
		paper("on-off", "one client with 30 calls a minute, every other minute, below its share of 40; one with 120 in all",
			client{name: "on-off", arrivals: everyOther(steady(30, 512))},
			client{name: "always", arrivals: steady(120, 512)}),
		paper("on-off-over", "one client with 120 calls a minute, every other minute, over its share of 40; one with 180 in all",
			client{name: "on-off", arrivals: everyOther(steady(120, 512))},
			client{name: "always", arrivals: steady(180, 512)}),
		paper("poisson", "Poisson arrivals; one client with 480 short calls a minute, one with 90 calls four times as long",
			client{name: "short", arrivals: poisson(1, 480, fixed(128))},
			client{name: "long", arrivals: poisson(2, 90, fixed(512))}),
		trace27(),
	}
}

// paperWindows is for how long the paper's loads run: ten minutes.
const paperWindows = 10

// paper is a load of clients of equal weights on a model that takes 80 calls of 512 tokens a
// minute: 256 of the prompt and 256 of the output, as in the paper.
func paper(name, about string, clients ...client) load {
	for i := range clients {
		clients[i].weight = 1
		for j := range clients[i].arrivals {
			clients[i].arrivals[j].at += time.Duration(i) * stagger
		}
	}
	return load{name: name, about: about, unit: "tokens", quota: 80 * 512, windows: paperWindows, answer: time.Second, clients: clients}
}

// trace27 has 27 clients with Poisson arrivals. The paper replays a trace of the LMSYS Chatbot Arena
// that we do not have; this one is made up from a fixed seed. Rates fall with the client's rank by a
// power law of exponent 1.1, 210 calls a minute together, as many as in the paper. Prompts and
// outputs have log-normal sizes with medians of 80 and 190 tokens, cut at 1,024.
func trace27() load {
	const (
		clients  = 27
		exponent = 1.1
		together = 210
	)
	sum := 0.0
	for rank := 1; rank <= clients; rank++ {
		sum += math.Pow(float64(rank), -exponent)
	}
	l := paper("trace", "27 clients, 210 calls a minute together by a power law, log-normal sizes; generated")
	l.quota = 64_000
	for rank := 1; rank <= clients; rank++ {
		rate := together * math.Pow(float64(rank), -exponent) / sum
		l.clients = append(l.clients, client{
			name: fmt.Sprintf("rank-%d", rank), weight: 1, arrivals: poisson(uint64(100+rank), rate, logNormal)})
	}
	return l
}

func fixed(cost int) func(*rand.Rand) int { return func(*rand.Rand) int { return cost } }

func logNormal(r *rand.Rand) int {
	part := func(median float64) int { return min(1+int(median*math.Exp(r.NormFloat64())), 1024) }
	return part(80) + part(190)
}

// steady are calls of one cost at a constant rate a minute.
func steady(rate, cost int) (all []arrival) {
	every := window / time.Duration(rate)
	for at := every; at < paperWindows*window; at += every {
		all = append(all, arrival{at, cost})
	}
	return all
}

// everyOther keeps the arrivals of the first minute, of the third, and so on.
func everyOther(all []arrival) (kept []arrival) {
	for _, a := range all {
		if a.at/window%2 == 0 {
			kept = append(kept, a)
		}
	}
	return kept
}

// poisson are calls at random times, rate of them a minute on average.
func poisson(seed uint64, rate float64, cost func(*rand.Rand) int) (all []arrival) {
	r := rand.New(rand.NewPCG(seed, 0))
	for at := 0.0; ; {
		at += r.ExpFloat64() / rate * window.Seconds()
		when := time.Duration(at * float64(time.Second))
		if when >= paperWindows*window {
			return all
		}
		all = append(all, arrival{when, cost(r)})
	}
}
