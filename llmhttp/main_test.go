package llmhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llmhttp"
	"dappco.re/go/core/go-ratelimit/mockprovider"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start")) // which Gemini's SDK starts
}

// model is the one that tests call, but for those that compare several.
const model = "some-model"

// ample is a quota that nothing here exceeds.
var ample = ratelimit.ModelQuota{MaxRPM: 100_000, MaxTPM: 1_000_000_000, MaxConcurrent: 20_000}

// world is a provider, a limiter, and clients of both.
type world struct {
	t       *testing.T
	server  *mockprovider.Server
	direct  *http.Transport // to the provider, past the limiter
	limiter *ratelimit.RateLimiter
	events  *recorder
	client  *http.Client // through the limiter
}

// newWorld starts a provider, with a limiter of one model before it.
func newWorld(t *testing.T, config mockprovider.Config, quota ratelimit.ModelQuota, options ...llmhttp.Option) *world {
	t.Helper()
	w := &world{t: t, server: mockprovider.New(config), events: &recorder{}}
	direct, stop := w.server.InMemory()
	t.Cleanup(stop)
	w.direct, w.limiter = direct, newLimiter(t, quota, w.events)
	w.client = w.through(options...)
	return w
}

func newLimiter(t *testing.T, quota ratelimit.ModelQuota, observer ratelimit.Observer) *ratelimit.RateLimiter {
	t.Helper()
	limiter, err := ratelimit.NewWithConfig(ratelimit.Config{
		FilePath: filepath.Join(t.TempDir(), "none.yaml"), Observer: observer,
		Quotas: map[string]ratelimit.ModelQuota{model: quota},
	})
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

// through returns a client that the limiter limits.
func (w *world) through(options ...llmhttp.Option) *http.Client {
	return &http.Client{Transport: llmhttp.New(w.direct, w.limiter, options...)}
}

// script is a provider that always replies the same.
func script(r mockprovider.Reply) mockprovider.Config {
	return mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply { return r }}
}

// settled expects that all calls have come to an end: each that has reached the
// provider is settled, with as many tokens as the provider has sent, and none holds
// a place.
func (w *world) settled() {
	w.t.Helper()
	used := w.ended()
	sent := w.server.Totals()[model]
	if used.Input != sent.Input || used.Output != sent.Output {
		w.t.Errorf("%d and %d tokens are settled; the provider has sent %+v", used.Input, used.Output, sent)
	}
}

// ended expects that each call that has reached the provider is settled, and none
// holds a place. It returns what all have used, as far as that is known.
func (w *world) ended() (used ratelimit.Tokens) {
	w.t.Helper()
	sent := w.server.Totals()[model]
	counts := map[ratelimit.EventKind]int{}
	for _, e := range w.events.all() {
		counts[e.Kind]++
		if e.Kind == ratelimit.EventSettled {
			used.Input += max(e.Used.Input, 0)
			used.Output += max(e.Used.Output, 0)
		}
	}
	if n := counts[ratelimit.EventSettled]; n != sent.Requests+sent.Refused {
		w.t.Errorf("%d calls are settled; the provider has had %+v", n, sent)
	}
	if admitted, ended := counts[ratelimit.EventAdmitted], counts[ratelimit.EventSettled]+counts[ratelimit.EventCancelled]; admitted != ended {
		w.t.Errorf("%d calls were admitted, %d have ended", admitted, ended)
	}
	if n := w.limiter.Stats(model).Concurrent; n != 0 {
		w.t.Errorf("%d places are held", n)
	}
	return used
}

// recorder keeps what happens.
type recorder struct {
	mu   sync.Mutex
	list []ratelimit.Event
}

func (r *recorder) Observe(_ context.Context, e ratelimit.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
}

func (r *recorder) all() []ratelimit.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// count returns how many events there were of a kind.
func (r *recorder) count(kind ratelimit.EventKind) (n int) {
	for _, e := range r.all() {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// sdkCall is a call with an SDK. It returns all that the SDK has shown.
type sdkCall struct {
	name string
	call func(ctx context.Context, client *http.Client) []string
}

// sdkReply is what the provider replies. It is exact if it tells all that was used.
type sdkReply struct {
	name  string
	exact bool
	reply func(mockprovider.Call) mockprovider.Reply
}

// always replies the same.
func always(r mockprovider.Reply) func(mockprovider.Call) mockprovider.Reply {
	return func(mockprovider.Call) mockprovider.Reply { return r }
}

// once replies so to the first call of a model, and then with a text.
func once(r mockprovider.Reply) func(mockprovider.Call) mockprovider.Reply {
	return func(c mockprovider.Call) mockprovider.Reply {
		if c.Number > 1 {
			return mockprovider.Reply{}
		}
		return r
	}
}

// transparent makes each call with each reply, past the limiter and through it, each
// time with a clock and a provider that have just begun. What the SDK shows must be
// the same, and what it has used must be what is settled.
func transparent(t *testing.T, calls []sdkCall, replies []sdkReply) {
	for _, c := range calls {
		for _, r := range replies {
			t.Run(c.name+"/"+r.name, func(t *testing.T) {
				var without, with []string
				config := mockprovider.Config{Script: r.reply}
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, config, ample)
					without = c.call(t.Context(), &http.Client{Transport: w.direct})
				})
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, config, ample)
					with = c.call(t.Context(), w.client)
					synctest.Wait()
					if r.exact {
						w.settled()
					} else if used, sent := w.ended(), w.server.Totals()[model]; used.Output > sent.Output || used.Input > sent.Input {
						t.Errorf("%+v is settled; the provider has sent %+v", used, sent)
					}
				})
				if len(without) == 0 {
					t.Fatal("the SDK has shown nothing")
				}
				if diff := cmp.Diff(seen(without), seen(with)); diff != "" {
					t.Errorf("without (-) and with (+) the transport:\n%s", diff)
				}
			})
		}
	}
}

// differs is what may differ: an SDK comes back after a time that is drawn by lot,
// and a chunk may say that it does not tell usage.
var differs = regexp.MustCompile(`"Date":\["[^"]*"\],|Date: .*\n|,"usage":null`)

// seen returns what the SDK has shown, without what may differ.
func seen(shown []string) []string {
	list := make([]string, len(shown))
	for i, text := range shown {
		list[i] = differs.ReplaceAllString(text, "")
	}
	return list
}

// shownError is an error as an SDK shows it.
func shownError(err error, response *http.Response) string {
	text := fmt.Sprintf("error: %v", err)
	if response == nil {
		return text
	}
	var headers []string
	for name, values := range response.Header {
		headers = append(headers, name+": "+strings.Join(values, ","))
	}
	slices.Sort(headers)
	return fmt.Sprintf("%s\n%s\n%s", text, response.Status, strings.Join(headers, "\n"))
}
