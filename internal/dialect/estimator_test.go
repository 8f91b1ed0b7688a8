package dialect

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/llm"
)

// workload is a realistic kind of calls: it returns the i-th call, and what that uses.
type workload struct {
	name string
	call func(r *rand.Rand, i int) (Request, llm.Usage)
}

// workloads are those for which both aims of the Estimator can be met, because a large part of the
// usage is prompt.
var workloads = []workload{
	{"even", func(r *rand.Rand, _ int) (Request, llm.Usage) {
		return spending(logUniform(r, 900, 1100), lognormal(r, 1, 0.03), lognormal(r, 300, 0.2))
	}},
	{"skewed answers", func(r *rand.Rand, _ int) (Request, llm.Usage) {
		return spending(logUniform(r, 200, 5000), lognormal(r, 1.1, 0.15), lognormal(r, 300, 0.8))
	}},
	{"skewed prompts and answers", func(r *rand.Rand, _ int) (Request, llm.Usage) {
		return spending(lognormal(r, 1000, 0.8), lognormal(r, 1, 0.15), lognormal(r, 400, 0.8))
	}},
	{"very skewed answers", func(r *rand.Rand, _ int) (Request, llm.Usage) {
		return spending(lognormal(r, 1500, 0.8), lognormal(r, 1, 0.1), lognormal(r, 300, 1))
	}},
	{"heavy tail", func(r *rand.Rand, _ int) (Request, llm.Usage) {
		return spending(logUniform(r, 200, 5000), lognormal(r, 1, 0.1), 150*math.Pow(1-r.Float64(), -1/2.2))
	}},
	{"bimodal, 15% long", func(r *rand.Rand, _ int) (Request, llm.Usage) {
		return spending(logUniform(r, 200, 5000), lognormal(r, 1, 0.1), mixture(r, 0.15, lognormal(r, 1500, 0.3), lognormal(r, 60, 0.4)))
	}},
	{"bimodal, 6% long", func(r *rand.Rand, _ int) (Request, llm.Usage) {
		return spending(logUniform(r, 200, 5000), lognormal(r, 1, 0.1), mixture(r, 0.06, lognormal(r, 1500, 0.3), lognormal(r, 60, 0.4)))
	}},
	{"answers by the prompt", func(r *rand.Rand, _ int) (Request, llm.Usage) {
		prompt := logUniform(r, 200, 5000)
		return spending(prompt, lognormal(r, 1, 0.1), prompt*lognormal(r, 1, 0.2))
	}},
	{"answers grow x4 in 200 calls", func(r *rand.Rand, i int) (Request, llm.Usage) {
		return spending(logUniform(r, 200, 5000), lognormal(r, 1, 0.1), lognormal(r, 200*driftAt(i), 0.7))
	}},
	{"answers shrink x4 in 200 calls", func(r *rand.Rand, i int) (Request, llm.Usage) {
		return spending(logUniform(r, 200, 5000), lognormal(r, 1, 0.1), lognormal(r, 1200/driftAt(i), 0.7))
	}},
	{"tokens by the character grow x4", func(r *rand.Rand, i int) (Request, llm.Usage) {
		return spending(logUniform(r, 200, 5000), lognormal(r, driftAt(i), 0.1), lognormal(r, 400, 0.7))
	}},
	{"answers jump x3 and back", func(r *rand.Rand, i int) (Request, llm.Usage) {
		return spending(logUniform(r, 200, 5000), lognormal(r, 1, 0.1), lognormal(r, 250*jumpAt(i), 0.7))
	}},
	{"tokens by the character jump x3", func(r *rand.Rand, i int) (Request, llm.Usage) {
		return spending(logUniform(r, 200, 5000), lognormal(r, jumpAt(i), 0.15), lognormal(r, 250, 0.7))
	}},
	{"prompts grow x25 and start over", func(r *rand.Rand, i int) (Request, llm.Usage) {
		return spending(lognormal(r, 200*math.Pow(25, float64(i%200)/200), 0.4), lognormal(r, 1, 0.15), lognormal(r, 250, 0.7))
	}},
	{"short and long tasks in turn", func(r *rand.Rand, i int) (Request, llm.Usage) {
		return spending(logUniform(r, 200, 5000), lognormal(r, 1, 0.1), lognormal(r, []float64{150, 800}[i/25%2], 0.5))
	}},
	{"several answers", func(r *rand.Rand, _ int) (Request, llm.Usage) {
		answers := 1 + r.IntN(4)
		var output float64
		for range answers {
			output += lognormal(r, 200, 0.7)
		}
		request, used := spending(logUniform(r, 200, 5000), lognormal(r, 1, 0.1), output)
		request.Answers = answers
		return request, used
	}},
	{"bounded by habit", func(r *rand.Rand, _ int) (Request, llm.Usage) {
		request, used := spending(logUniform(r, 200, 5000), lognormal(r, 1, 0.1), lognormal(r, 300, 0.8))
		request.MaxOutput = 128_000
		return request, used
	}},
	{"bounded closely", func(r *rand.Rand, _ int) (Request, llm.Usage) {
		request, used := spending(logUniform(r, 200, 5000), lognormal(r, 1, 0.1), lognormal(r, 300, 0.8))
		request.MaxOutput = 400
		used.Output = min(used.Output, 400)
		return request, used
	}},
	{"half cached", func(r *rand.Rand, _ int) (Request, llm.Usage) {
		request, used := spending(logUniform(r, 200, 5000), lognormal(r, 1, 0.1), lognormal(r, 300, 0.8))
		used.Cached = int(float64(used.Input) * (0.2 + 0.6*r.Float64()))
		return request, used
	}},
}

func spending(prompt, tokensEach, output float64) (Request, llm.Usage) {
	r := Request{Endpoint: Endpoint{Provider: Anthropic, API: Messages, Model: "m"}, Answers: 1, Prompt: int(prompt)}
	return r, llm.Usage{Input: int(prompt * tokensEach), Output: int(output) + 1, Exact: true}
}

func lognormal(r *rand.Rand, median, sigma float64) float64 {
	return median * math.Exp(sigma*r.NormFloat64())
}

// logUniform returns a number between two, uniform on a logarithmic scale.
func logUniform(r *rand.Rand, least, most float64) float64 {
	return least * math.Pow(most/least, r.Float64())
}

func mixture(r *rand.Rand, part, one, other float64) float64 {
	if r.Float64() < part {
		return one
	}
	return other
}

func driftAt(i int) float64 { return math.Pow(4, min(max(float64(i-100)/200, 0), 1)) }

func jumpAt(i int) float64 { return []float64{1, 3}[i/150%2] }

// coverage compares the estimates of many calls with their usage.
type coverage struct {
	calls, covered, inputs, outputs int
	reserved, used                  float64
}

func (t *coverage) add(reserved, used llm.Tokens) {
	t.calls++
	input, output := reserved.Input-reserved.FreeInput, reserved.Output-reserved.FreeOutput
	usedInput, usedOutput := used.Input-used.FreeInput, used.Output-used.FreeOutput
	t.covered += oneIf(usedInput+usedOutput <= input+output)
	t.inputs += oneIf(usedInput <= input)
	t.outputs += oneIf(usedOutput <= output)
	t.reserved += float64(input + output)
	t.used += float64(usedInput + usedOutput)
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func (t *coverage) part(n int) float64 { return float64(n) / float64(t.calls) }

func (t *coverage) ratio() float64 { return t.reserved / t.used }

// runLoad makes 650 calls of a load, of which underWay are always in flight, and passes each from
// the fiftieth on to see.
func runLoad(l workload, seed uint64, underWay int, see func(i int, reserved, used llm.Tokens)) {
	type made struct {
		request Request
		used    llm.Usage
	}
	var e Estimator
	var calls []made
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range 650 {
		request, used := l.call(r, i)
		calls = append(calls, made{request, used})
		reserved := e.Estimate("p", &request)
		if i >= 50 {
			see(i, reserved, TokensOf(used, request.Provider, llm.TokenWeights{}))
		}
		if i >= underWay {
			ended := calls[i-underWay]
			e.Learn("p", &ended.request, ended.used)
		}
	}
}

func TestEstimatesCoverAndAreNotTooLarge(t *testing.T) {
	for _, l := range workloads {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			var all coverage
			for seed := range uint64(4) {
				runLoad(l, seed, 0, func(_ int, reserved, used llm.Tokens) { all.add(reserved, used) })
			}
			covered, inputs, outputs := all.part(all.covered), all.part(all.inputs), all.part(all.outputs)
			t.Logf("covered %.1f%%, input %.1f%%, output %.1f%%; reserved x%.2f", 100*covered, 100*inputs, 100*outputs, all.ratio())
			if min(covered, inputs, outputs) < 0.95 {
				t.Error("want 95% covered, of input, of output and of both")
			}
			if all.ratio() >= 2.5 {
				t.Error("want less than x2.5 reserved")
			}
		})
	}
}

func TestEstimatesCoverWhileCallsAreUnderWay(t *testing.T) {
	for _, name := range []string{"skewed prompts and answers", "bimodal, 15% long", "heavy tail", "answers grow x4 in 200 calls"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := workloads[slices.IndexFunc(workloads, func(l workload) bool { return l.name == name })]
			var all coverage
			for seed := range uint64(4) {
				runLoad(l, seed, 16, func(_ int, reserved, used llm.Tokens) { all.add(reserved, used) })
			}
			covered := all.part(all.covered)
			t.Logf("covered %.1f%%; reserved x%.2f", 100*covered, all.ratio())
			if covered < 0.95 || all.ratio() >= 2.5 {
				t.Error("want 95% covered and less than x2.5 reserved")
			}
		})
	}
}

// A project's answers become three times as long at call 300, and short again at 450.
func TestEstimatesFollowJumps(t *testing.T) {
	l := workload{"jump", func(r *rand.Rand, i int) (Request, llm.Usage) {
		return spending(logUniform(r, 200, 2000), lognormal(r, 1, 0.1), lognormal(r, []float64{400, 400, 1200, 400, 400}[i/150], 0.5))
	}}
	var calls [650]coverage // over seeds
	for seed := range uint64(20) {
		runLoad(l, seed, 0, func(i int, reserved, used llm.Tokens) { calls[i].add(reserved, used) })
	}
	over := func(from, to int) (all coverage) {
		for _, c := range calls[from:to] {
			all.calls += c.calls
			all.covered += c.covered
			all.reserved += c.reserved
			all.used += c.used
		}
		return all
	}
	before, up, down := over(200, 300), over(308, 328), over(520, 600)
	t.Logf("before: x%.2f; from the 8th call after the jump up: %.1f%%; from the 70th after the jump down: x%.2f",
		before.ratio(), 100*up.part(up.covered), down.ratio())
	if up.part(up.covered) < 0.95 {
		t.Error("a jump up is not followed")
	}
	if down.ratio() > 1.1*before.ratio() {
		t.Error("a jump down is not followed")
	}
}

func TestEstimateBeforeAnythingIsLearned(t *testing.T) {
	chat := func(p llm.Provider, prompt, most, answers int) Request {
		return Request{Endpoint: Endpoint{Provider: p, API: Chat, Model: "m"}, Prompt: prompt, MaxOutput: most, Answers: answers}
	}
	const huge = math.MaxInt
	tests := []struct {
		name    string
		request Request
		want    llm.Tokens
	}{
		{"a short prompt", chat(Mistral, 80, 0, 1), llm.Tokens{Input: 106, Output: 256}},
		{"a prompt", chat(Mistral, 800, 0, 1), llm.Tokens{Input: 916, Output: 800}},
		{"a long prompt", chat(Mistral, 80_000, 0, 1), llm.Tokens{Input: 90_016, Output: 2048}},
		{"no prompt", chat(Mistral, 0, 0, 1), llm.Tokens{Input: 16, Output: 256}},
		{"two answers", chat(Mistral, 800, 0, 2), llm.Tokens{Input: 916, Output: 1600}},
		{"no number of answers", chat(Mistral, 800, 0, 0), llm.Tokens{Input: 916, Output: 800}},
		{"bounded closely", chat(Mistral, 800, 50, 1), llm.Tokens{Input: 916, Output: 50}},
		{"two bounded closely", chat(Mistral, 800, 50, 2), llm.Tokens{Input: 916, Output: 100}},
		{"bounded by habit", chat(Mistral, 80, 128_000, 1), llm.Tokens{Input: 106, Output: 1024}},
		{"a long one bounded by habit", chat(Mistral, 8000, 128_000, 1), llm.Tokens{Input: 9016, Output: 16_000}},
		{"OpenAI counts the bound", chat(OpenAI, 80, 128_000, 1), llm.Tokens{Input: 106, Output: 127_894}},
		{"and that of each answer", chat(OpenAI, 80, 1000, 3), llm.Tokens{Input: 106, Output: 3000}},
		{"or the prompt", chat(OpenAI, 800, 50, 1), llm.Tokens{Input: 916, Output: 50}},
		{"Azure counts it beside the prompt", chat(Azure, 80, 128_000, 1), llm.Tokens{Input: 106, Output: 128_000}},
		{"Gemini counts no output", chat(Gemini, 800, 0, 1), llm.Tokens{Input: 916, Output: 800, FreeOutput: 800}},
		{"Anthropic counts all of it", chat(Anthropic, 800, 0, 1), llm.Tokens{Input: 916, Output: 800}},
		{"embeddings", Request{Endpoint: Endpoint{Provider: OpenAI, API: Embeddings}, Prompt: 800, Answers: 1}, llm.Tokens{Input: 916}},
		{"nothing", Request{}, llm.Tokens{Input: 16, Output: 256}},
		{"nonsense", chat(Mistral, -5, -5, -5), llm.Tokens{Input: 16, Output: 256}},
		{"too much", chat(Mistral, huge, huge, huge), llm.Tokens{Input: maxEstimate, Output: maxEstimate}},
		{"too much of OpenAI", chat(OpenAI, 0, huge, huge), llm.Tokens{Input: 16, Output: maxEstimate}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var e Estimator
			if got := e.Estimate("p", &test.request); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestEstimateRisesAtOnceAndFallsGradually(t *testing.T) {
	request, _ := spending(1000, 1, 0)
	var e Estimator
	e.Learn("p", &request, llm.Usage{Input: 3000, Output: 5000, Exact: true})
	if got := e.Estimate("p", &request); got.Input < 3000 || got.Output < 5000 {
		t.Errorf("after one call of 3000 and 5000: %+v", got)
	}

	e = Estimator{}
	before := e.Estimate("p", &request)
	for range someCalls {
		e.Learn("p", &request, llm.Usage{Input: 500, Output: 10, Exact: true})
		got := e.Estimate("p", &request)
		if got.Input >= before.Input || got.Output >= before.Output {
			t.Fatalf("from %+v to %+v", before, got)
		}
		before = got
	}
	if before.Input > 501 || before.Output > 11 {
		t.Errorf("after %d calls of 500 and 10: %+v", someCalls, before)
	}
}

// The project's own calls were once lost in the rounding of a huge earlier estimate.
func TestOwnCallsCountBesideHugeOnesOfOthers(t *testing.T) {
	s := series{n: someCalls, reserve: 300}
	if got := s.revise(1e20, 1); got != 300 {
		t.Errorf("got %v, want 300", got)
	}
}

func TestNewProjectStartsWithWhatOthersHaveTaught(t *testing.T) {
	request, used := spending(1000, 2, 3999)
	var e Estimator
	unknown := e.Estimate("new", &request)
	for range 20 {
		e.Learn("old", &request, used)
	}
	if got := e.Estimate("new", &request); got.Input < 2000 || got.Input > 2100 || got.Output < 4000 || got.Output > 4200 {
		t.Errorf("a new project starts with %+v, want about 2000 and 4000", got)
	}
	other, elsewhere := request, request
	other.Model = "other"
	elsewhere.Provider = Mistral
	for _, r := range []Request{other, elsewhere} {
		for _, project := range []string{"old", "new"} {
			if got := e.Estimate(project, &r); got != unknown {
				t.Errorf("%s of %s starts with %+v, want %+v", r.Model, r.Provider, got, unknown)
			}
		}
	}
	for range lastCalls {
		e.Learn("new", &request, llm.Usage{Input: 1000, Output: 100, Exact: true})
	}
	if got := e.Estimate("new", &request); got.Input > 1001 || got.Output > 101 {
		t.Errorf("its own calls use 1000 and 100, and are estimated at %+v", got)
	}
	if got := e.Estimate("old", &request); got.Input < 2000 || got.Output < 4000 {
		t.Errorf("another's calls use 2000 and 4000, and are estimated at %+v", got)
	}
}

func TestLearnsOnlyReportedUsage(t *testing.T) {
	request, _ := spending(1000, 1, 0)
	first := new(Estimator).Estimate("p", &request)
	tests := []struct {
		name          string
		used          llm.Usage
		input, output bool // whether the call teaches the figure
	}{
		{"both", llm.Usage{Input: 5000, Output: 5000, Exact: true}, true, true},
		{"no input", llm.Usage{Input: -1, Output: 5000, Exact: true}, false, true},
		{"cut off", llm.Usage{Input: 5000, Output: 5000}, false, false},
		{"nothing", llm.Usage{Input: -1, Output: 5000}, false, false},
		{"nonsense", llm.Usage{Input: -7, Cached: -7, Output: -7, Exact: true}, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var e Estimator
			for range 5 {
				e.Learn("p", &request, test.used)
			}
			got := e.Estimate("p", &request)
			if (got.Input != first.Input) != test.input || (got.Output != first.Output) != test.output {
				t.Errorf("from %+v to %+v", first, got)
			}
		})
	}
}

func TestEmbeddingsHaveNoOutput(t *testing.T) {
	request := Request{Endpoint: Endpoint{Provider: OpenAI, API: Embeddings, Model: "m"}, Prompt: 500, Answers: 1}
	var e Estimator
	for range lastCalls {
		e.Learn("p", &request, llm.Usage{Input: 600, Output: 0, Exact: true})
	}
	if got := e.Estimate("p", &request); got.Input < 600 || got.Input > 601 || got.Output != 0 {
		t.Errorf("got %+v, want 600 and 0", got)
	}
	chat := request
	chat.API = Chat
	if got := e.Estimate("p", &chat); got.Output != 500 {
		t.Errorf("answers are estimated at %d by embeddings, which have none", got.Output)
	}
}

func TestWhatProvidersCount(t *testing.T) {
	used := llm.Usage{Input: 1000, Cached: 800, Output: 500, Exact: true}
	tests := []struct {
		provider              llm.Provider
		most                  int
		output                int
		freeInput, freeOutput int
	}{
		{Mistral, 0, 500, 0, 0},
		{Mistral, 400, 400, 0, 0},
		{Anthropic, 4000, 500, 800, 0},
		{Groq, 0, 500, 800, 0},
		{Gemini, 0, 500, 0, 500},
		{OpenAI, 0, 500, 0, 0},
		{OpenAI, 1200, 500, 0, 0},
		{OpenAI, 4000, 3000, 0, 0},
		{Azure, 4000, 4000, 0, 0},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.provider, " ", test.most), func(t *testing.T) {
			request := Request{Endpoint: Endpoint{Provider: test.provider, API: Chat, Model: "m"}, Prompt: 936, MaxOutput: test.most, Answers: 1}
			var e Estimator
			for range lastCalls {
				e.Learn("p", &request, used)
			}
			want := llm.Tokens{Input: 1000, Output: test.output, FreeInput: test.freeInput, FreeOutput: test.freeOutput}
			if got := e.Estimate("p", &request); !nearTokens(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// nearTokens reports whether two estimates are equal but for rounding.
func nearTokens(a, b llm.Tokens) bool {
	same := func(a, b int) bool {
		return math.Abs(float64(a)-float64(b)) <= 2+1e-6*math.Abs(float64(b))
	}
	return same(a.Input, b.Input) && same(a.Output, b.Output) && same(a.FreeInput, b.FreeInput) && same(a.FreeOutput, b.FreeOutput)
}

// The estimate of a call without a project comes from the calls of all projects.
func TestCallWithoutProjectUsesAllProjects(t *testing.T) {
	request, _ := spending(936, 1, 0)
	var e Estimator
	for range lastCalls {
		e.Learn("p", &request, llm.Usage{Input: 3000, Output: 5000, Exact: true})
	}
	if got, want := e.Estimate("", &request), (llm.Tokens{Input: 3000, Output: 5000}); !nearTokens(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Constant costs of short prompts must not be multiplied for long ones.
func TestShortPromptsSayLittleOfLongOnes(t *testing.T) {
	short, _ := spending(2, 1, 0)
	long, _ := spending(5000, 1, 0)
	var e Estimator
	for range lastCalls {
		e.Learn("p", &short, llm.Usage{Input: 30, Output: 100, Exact: true})
		e.Learn("p", &long, llm.Usage{Input: 5000, Output: 100, Exact: true})
	}
	if got := e.Estimate("p", &long).Input; got < 5000 || got > 5100 {
		t.Errorf("5000 tokens are estimated at %d", got)
	}
	if got := e.Estimate("p", &short).Input; got < 30 || got > 100 {
		t.Errorf("30 tokens are estimated at %d", got)
	}
}

// While every call uses more than all calls before, more is reserved than any has used, but not
// without bound, and not for long after that.
func TestEstimateExceedsLargestFigureWhileCallsGrow(t *testing.T) {
	request, used := spending(936, 1, 0)
	var e Estimator
	for i := range 40 {
		used.Output = int(100 * math.Pow(1.3, float64(i)))
		e.Learn("p", &request, used)
	}
	if got := float64(e.Estimate("p", &request).Output) / float64(used.Output); got < 1.2 || got > 1.6 {
		t.Errorf("x%.2f of the most is reserved, want x1.2 to x1.6", got)
	}
	for range 130 {
		e.Learn("p", &request, used)
	}
	if got := float64(e.Estimate("p", &request).Output) / float64(used.Output); got > 1.001 {
		t.Errorf("x%.2f is reserved of what all calls use", got)
	}
}

func TestManyNamesTakeLittleMemory(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	request, used := spending(1000, 2, 4000)
	var e Estimator
	before := heapInUse()
	for range someCalls {
		e.Learn("in use", &request, llm.Usage{Input: 7000, Output: 9000, Exact: true})
	}
	most := 0
	for i := range 20_000 {
		e.Learn(fmt.Sprint(strings.Repeat("p", 1000), i), &request, used)
		if i%64 == 0 {
			e.Estimate("in use", &request)
			most = max(most, slices.Max(histories(&e)))
		}
	}
	if took := heapInUse() - before; took > 4096<<10 {
		t.Errorf("20,000 projects take %d KB, want 4,096 at most", took>>10)
	}
	if all := most * len(e.histories.shards); all < 3600 || all > 4096 {
		t.Errorf("up to %d histories are kept, want 3,600 to 4,096", all)
	}
	if got := e.Estimate("in use", &request); got.Output < 9000 {
		t.Errorf("a project in use was forgotten: %+v", got)
	}
}

// histories returns how many histories each shard has.
func histories(e *Estimator) []int {
	n := make([]int, len(e.histories.shards))
	for i := range e.histories.shards {
		s := &e.histories.shards[i]
		n[i] = len(s.young)
		for hash := range s.old {
			n[i] += oneIf(s.young[hash] == nil)
		}
	}
	return n
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestOnlyLearnedCallsAreRemembered(t *testing.T) {
	request, _ := spending(1000, 1, 0)
	var e Estimator
	for i := range 100 {
		e.Estimate(fmt.Sprint(i), &request)
		e.Learn(fmt.Sprint(i), &request, llm.Usage{Input: -1, Output: 10})
	}
	if slices.Max(histories(&e)) > 0 {
		t.Error("nothing was learned, and is remembered")
	}
}

func TestKnownProjectsTakeNoAllocation(t *testing.T) {
	request, used := spending(1000, 1, 500)
	var e Estimator
	e.Learn("p", &request, used)
	if n := testing.AllocsPerRun(100, func() {
		e.Estimate("p", &request)
		e.Learn("p", &request, used)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Calls of constant cost teach that cost, whatever the order in which goroutines make them.
func TestEstimatorIsSharedByGoroutines(t *testing.T) {
	var e Estimator
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			request, used := spending(936, 2, 299)
			for i := range 300 {
				project := fmt.Sprint(i % (g + 1))
				e.Estimate(project, &request)
				e.Learn(project, &request, used)
				e.Learn(fmt.Sprint(g, i), &request, used)
			}
		})
	}
	wg.Wait()
	request, used := spending(936, 2, 299)
	if got, want := e.Estimate("0", &request), TokensOf(used, request.Provider, llm.TokenWeights{}); !nearTokens(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// naiveEstimator follows the description of the Estimator with no regard to cost: it keeps all
// calls.
type naiveEstimator map[owner]*naiveHistory

type naiveHistory struct {
	input, counted, output naiveSeries
	longest                float64
}

// naiveSeries has all figures of one kind, the newest first.
type naiveSeries struct {
	all         []float64
	level, high float64
}

func (n naiveEstimator) learn(project string, r *Request, used llm.Usage) {
	if !used.Exact {
		return
	}
	told, ended := used.Input >= 0 && used.Input <= 1<<24, used.Output >= 0 && used.Output <= 1<<24 && r.API != Embeddings
	input, output := float64(used.Input), float64(used.Output)
	counted := input
	if r.Provider == Anthropic || r.Provider == Groq {
		counted -= min(input, float64(max(used.Cached, 0)))
	}
	c := callOf(r)
	prompt := c.prompt + 64
	for _, o := range []owner{{r.Provider, r.Model, project, false}, {r.Provider, r.Model, "", true}} {
		if o.shared {
			first := c.first()
			told, ended = told && input <= 4*first.input+1024, ended && output <= 8*first.output
		}
		if !told && !ended {
			continue
		}
		if n[o] == nil {
			n[o] = new(naiveHistory)
		}
		h := n[o]
		var sum float64
		if told {
			sum += counted
		}
		if ended {
			sum += output
		}
		over := sum > math.Ceil(h.counted.high*prompt)+math.Ceil(h.output.high*c.answers)
		if told {
			h.longest = max(h.longest*63/64, c.prompt)
			h.input.add(float32(input/prompt), over)
			h.counted.add(float32(counted/prompt), over)
		}
		if ended {
			h.output.add(float32(output/c.answers), over)
		}
	}
}

func (s *naiveSeries) add(figure float32, over bool) {
	if len(s.all) == 0 {
		s.level = 0.03
	} else if over || float64(figure) > s.high {
		s.level = max(-0.06, s.level-0.955/64)
	} else {
		s.level = min(0.12, s.level+0.045/64)
	}
	s.all = slices.Insert(s.all, 0, float64(figure))
	sorted := slices.Clone(s.all[:min(64, len(s.all))])
	slices.Sort(sorted)
	slices.Reverse(sorted)
	rank, between := math.Modf(s.level * float64(len(sorted)))
	if s.level <= 0 {
		s.high = sorted[0] * (1 - 0.15*(rank+between))
		return
	}
	above, below := sorted[int(rank)], sorted[min(int(rank)+1, len(sorted)-1)]
	s.high = above - (above-below)*between
}

func (s *naiveSeries) weigh(tokens, units float64) float64 {
	own, n := s.high*units, float64(len(s.all))
	if own > tokens || n >= 16 {
		return own
	}
	return (own*n + tokens*(16-n)) / 16
}

func (n naiveEstimator) estimate(project string, r *Request) llm.Tokens {
	c := callOf(r)
	f := c.first()
	for _, o := range []owner{{r.Provider, r.Model, "", true}, {r.Provider, r.Model, project, false}} {
		if h := n[o]; h != nil {
			before := f
			f.input = h.input.weigh(f.input, c.prompt+64)
			f.counted = h.counted.weigh(f.counted, c.prompt+64)
			f.output = h.output.weigh(f.output, c.answers)
			if c.prompt > 2*h.longest {
				f.input, f.counted = max(f.input, before.input), max(f.counted, before.counted)
			}
		}
		if first := c.first(); o.shared {
			f.input, f.counted = min(f.input, 4*first.input+1024), min(f.counted, 4*first.input+1024)
			f.output = min(f.output, 8*first.output)
		}
	}
	t := llm.Tokens{Input: roundedTokens(f.input), Output: roundedTokens(f.output)}
	if r.MaxOutput > 0 {
		bound := roundedTokens(float64(r.MaxOutput) * c.answers)
		t.Output = min(t.Output, bound)
		switch r.Provider {
		case OpenAI:
			t.Output = max(t.Output, bound-t.Input)
		case Azure:
			t.Output = max(t.Output, bound)
		}
	}
	if r.API == Embeddings {
		t.Output = 0
	}
	t.FreeInput = max(0, t.Input-roundedTokens(f.counted))
	if r.Provider == Gemini {
		t.FreeOutput = t.Output
	}
	return t
}

// A history of short prompts does not lower the estimate of a long one.
func TestEstimatorLongPromptAfterShortOnes(t *testing.T) {
	var e Estimator
	short := Request{Endpoint: Endpoint{Provider: OpenAI, API: Chat, Model: "m"}, Prompt: 12, Answers: 1}
	for range 200 {
		e.Learn("", &short, llm.Usage{Input: 7, Output: 16, Exact: true})
	}
	long := short
	long.Prompt = 65_000
	if got := e.Estimate("", &long).Input; got < long.Prompt {
		t.Errorf("%d tokens are reserved for a prompt of %d", got, long.Prompt)
	}
}

// Each 16 bytes of the input are a call: what it asks for, and what it has used.
func FuzzEstimator(f *testing.F) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 2))
		calls := make([]byte, 16*400)
		for i := range calls {
			calls[i] = byte(r.Uint32())
		}
		f.Add(calls)
	}
	providers := []llm.Provider{Anthropic, OpenAI, Azure, Gemini, Groq, Mistral}
	f.Fuzz(func(t *testing.T, calls []byte) {
		var e Estimator
		n := make(naiveEstimator)
		for i := 0; i+16 <= min(len(calls), 16*400); i += 16 {
			b := calls[i:]
			number := func(at int) int {
				n := int(binary.LittleEndian.Uint16(b[at:])) << []int{0, 0, 0, 0, 0, 0, 20, 47}[b[0]%8]
				if b[1] == byte(at) {
					return -n
				}
				return n
			}
			r := Request{
				Endpoint:  Endpoint{Provider: providers[max(int(b[1]%16)-10, 0)], API: Chat, Model: "m"},
				Prompt:    number(2),
				MaxOutput: number(4) * int(b[0]>>3&1),
				Answers:   number(6) >> 14,
			}
			if b[0]>>4 == 0 {
				r.API = Embeddings
			}
			used := llm.Usage{Input: number(8), Cached: number(10), Output: number(12), Exact: b[14] > 9}
			project := string('a' + rune(b[15]%3))

			got, want := e.Estimate(project, &r), n.estimate(project, &r)
			if !nearTokens(got, want) {
				t.Fatalf("call %d, %+v:\ngot  %+v\nwant %+v", i/16, r, got, want)
			}
			if min(got.FreeInput, got.FreeOutput) < 0 || got.FreeInput > got.Input || got.FreeOutput > got.Output || max(got.Input, got.Output) > maxEstimate {
				t.Fatalf("call %d, %+v:\ngot %+v, which is out of bounds", i/16, r, got)
			}
			e.Learn(project, &r, used)
			n.learn(project, &r, used)
		}
	})
}

func BenchmarkEstimator(b *testing.B) {
	request, used := spending(1000, 1, 500)
	var e Estimator
	for range lastCalls {
		e.Learn("p", &request, used)
	}
	b.Run("Estimate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Estimate("p", &request)
		}
	})
	b.Run("Learn", func(b *testing.B) {
		b.ReportAllocs()
		r := rand.New(rand.NewPCG(1, 1))
		for b.Loop() {
			used.Output = r.IntN(1000)
			e.Learn("p", &request, used)
		}
	})
}
