package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secretText = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func secret(t testing.TB) webhook.Secret {
	t.Helper()
	s, err := webhook.ParseSecret(secretText)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// results collects what became of messages.
type results chan webhook.Result

func (r results) next(t *testing.T) webhook.Result {
	t.Helper()
	select {
	case result := <-r:
		return result
	case <-time.After(20 * time.Second):
		t.Fatal("no result")
		return webhook.Result{}
	}
}

func newSender(t *testing.T, url string) (*webhook.Sender, results) {
	t.Helper()
	all := make(results, 2000)
	s, err := webhook.New(webhook.Config{URL: url, Secret: secret(t), OnResult: func(r webhook.Result) { all <- r }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Close(ctx)
	})
	return s, all
}

func reached(percent int) event.Event {
	return event.Event{Kind: event.Threshold, Project: "acme/a", Limit: "dollars_per_day", Budget: &event.Budget{
		Owner: "acme", Limit: "dollars_per_day", Unit: "dollars", Percent: percent, Used: 81_500_000_000, Max: 100_000_000_000,
		At: time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC), Resets: time.Date(2026, 11, 17, 0, 0, 0, 0, time.UTC),
	}}
}

// receiver is a real server that gets messages. Each of its answers is next in turn: a status, 0 to cut
// the connection, or -1 to hang until the client has left.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int
	ids     []string
	bodies  []string
	faults  []error
}

func newReceiver(t *testing.T, answers ...int) *receiver {
	r := &receiver{answers: answers}
	sign := secret(t)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		r.mu.Lock()
		r.ids, r.bodies = append(r.ids, req.Header.Get("webhook-id")), append(r.bodies, string(body))
		r.faults = append(r.faults, errors.Join(err, sign.Verify(req.Header, body, time.Now())))
		answer := http.StatusNoContent
		if len(r.answers) > 0 {
			answer, r.answers = r.answers[0], r.answers[1:]
		}
		r.mu.Unlock()
		switch answer {
		case 0:
			panic(http.ErrAbortHandler)
		case -1:
			<-req.Context().Done()
		case http.StatusFound:
			http.Redirect(w, req, "/elsewhere", answer)
		default:
			w.WriteHeader(answer)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// A message comes through when the receiver is back, with the same id and body each time, and signed.
func TestReceiverFailsAndComesBack(t *testing.T) {
	r := newReceiver(t, 500, 0, 429, 302, 404, 200)
	s, results := newSender(t, r.URL)
	s.Hasten()
	s.Observe(t.Context(), reached(80))
	s.Observe(t.Context(), event.Event{Kind: event.Admitted})
	if got := results.next(t); got.Err != nil || got.Attempts != 6 || got.Budget.Percent != 80 {
		t.Errorf("%+v", got)
	}
	s.Observe(t.Context(), reached(100))
	if got := results.next(t); got.Err != nil || got.Attempts != 1 {
		t.Errorf("%+v", got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.faults...); err != nil {
		t.Error(err)
	}
	if len(r.ids) != 7 || r.ids[0] != r.ids[5] || r.bodies[0] != r.bodies[5] || r.ids[6] == r.ids[0] || !strings.HasPrefix(r.ids[0], "msg_") {
		t.Error(r.ids)
	}
	const want = `{"type":"budget.threshold","timestamp":"2026-11-16T12:00:00Z","data":{"owner":"acme","project":"acme/a","limit":"dollars_per_day",` +
		`"unit":"dollars","percent":80,"used":81.50,"max":100.00,"resets_at":"2026-11-17T00:00:00Z"}}`
	testkit.Equal(t, "body", want, r.bodies[0])
	var m webhook.Message
	if err := json.Unmarshal([]byte(r.bodies[0]), &m); err != nil || m.Data.Owner != "acme" {
		t.Error(m, err)
	}
}

// transport answers requests in a bubble.
type transport func(*http.Request) (int, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) {
	status, err := f(req)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(&bytes.Buffer{}), Request: req}, nil
}

// A message is tried 12 times at most, with back-off and jitter, within ten seconds each, and then the
// next one is.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, results := newSender(t, "https://example.com/hook")
		var at []time.Time
		s.Through(transport(func(req *http.Request) (int, error) {
			at = append(at, time.Now())
			if len(at) == 1 {
				<-req.Context().Done() // it hangs
				return 0, req.Context().Err()
			}
			return 503, nil
		}))
		s.Observe(t.Context(), reached(80))
		got := <-results
		if got.Err == nil || got.Attempts != 12 || len(at) != 12 || strings.Contains(got.Err.Error(), "example.com") {
			t.Errorf("%+v, %d", got, len(at))
		}
		if waited := at[1].Sub(at[0]); waited < 10*time.Second || waited > 11*time.Second {
			t.Errorf("tried again after %v", waited)
		}
		delay := 2 * time.Second
		for i := 2; i < len(at); i++ {
			if waited := at[i].Sub(at[i-1]); waited < delay/2 || waited > delay {
				t.Errorf("attempt %d comes after %v, want up to %v", i+1, waited, delay)
			}
			delay = min(2*delay, 5*time.Minute)
		}
	})
}

// A receiver that hangs lets messages wait, up to a number, and delays no call.
func TestHangingReceiverDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, results := newSender(t, "https://example.com/hook")
		s.Through(transport(func(req *http.Request) (int, error) {
			<-req.Context().Done()
			return 0, req.Context().Err()
		}))
		l, err := project.NewWithConfig(project.Config{Default: &project.Limit{RequestsPerDay: 2}, Thresholds: []int{50, 100}, Observer: s})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		began := time.Now()
		for i := range 600 { // two messages each, of which 1024 wait and one is under way
			l.Allow(t.Context(), fmt.Sprint("p", i))
			l.Allow(t.Context(), fmt.Sprint("p", i))
			synctest.Wait()
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("calls took %v", took)
		}
		if len(results) > 0 || s.HasRoom(reached(50)) {
			t.Errorf("%d messages were dropped, and there is room: %v", len(results), s.HasRoom(reached(50)))
		}
		s.Observe(t.Context(), reached(50))
		if !errors.Is((<-results).Err, webhook.ErrFull) {
			t.Error("a message beyond the bound has another error")
		}
	})
}

// Close delivers what waits, for as long as it may take.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, results := newSender(t, "https://example.com/hook")
		status := 500
		s.Through(transport(func(*http.Request) (int, error) { return status, nil }))
		s.Observe(t.Context(), reached(50))
		s.Observe(t.Context(), reached(80))
		synctest.Wait()
		status = 200
		s.Close(t.Context())
		first, second := <-results, <-results
		if first.Err == nil || second.Err != nil || second.Attempts != 1 {
			t.Errorf("%+v, %+v", first, second)
		}
		s.Observe(t.Context(), reached(100))
		if last := <-results; !errors.Is(last.Err, webhook.ErrClosed) {
			t.Errorf("%+v", last)
		}
		s, results = newSender(t, "https://example.com/hook")
		s.Through(transport(func(req *http.Request) (int, error) {
			<-req.Context().Done()
			return 0, req.Context().Err()
		}))
		s.Observe(t.Context(), reached(50))
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Close(ctx)
		if took := time.Since(began); took != time.Second || (<-results).Err == nil {
			t.Errorf("it took %v", took)
		}
	})
}

// The signature is that of the example of Standard Webhooks.
func TestSignature(t *testing.T) {
	h := http.Header{}
	h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("webhook-timestamp", "1614265330")
	h.Set("webhook-signature", "v1a,x v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	body, now := []byte(`{"test": 2432232314}`), time.Unix(1614265330, 0)
	s := secret(t)
	if err := s.Verify(h, body, now); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"another body":   s.Verify(h, []byte("{}"), now),
		"too late":       s.Verify(h, body, now.Add(webhook.Tolerance+time.Second)),
		"too early":      s.Verify(h, body, now.Add(-webhook.Tolerance-time.Second)),
		"without header": s.Verify(http.Header{}, body, now),
	} {
		if err == nil {
			t.Errorf("%s passes", name)
		}
	}
	h.Set("webhook-timestamp", "now")
	if s.Verify(h, body, now) == nil {
		t.Error("a bad time passes")
	}
}

func TestBadConfig(t *testing.T) {
	for _, text := range []string{"", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_hunter2", "whsec_" + strings.Repeat("A", 100)} {
		if s, err := webhook.ParseSecret(text); err == nil || strings.Contains(err.Error(), "hunter2") || s.String() != "[secret]" {
			t.Errorf("%q: %v", text, err)
		}
	}
	for url, fine := range map[string]bool{
		"https://example.com/hook": true, "http://localhost:8080/hook": true, "http://127.0.0.1/": true,
		"http://example.com/hook": false, "ftp://example.com": false, "example.com": false, "https://": false, "": false, "://": false,
	} {
		if _, err := webhook.New(webhook.Config{URL: url, Secret: secret(t)}); (err == nil) != fine {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := webhook.New(webhook.Config{URL: "http://example.com", Insecure: true, Secret: secret(t)}); err != nil {
		t.Error(err)
	}
	if _, err := webhook.New(webhook.Config{URL: "https://example.com"}); err == nil {
		t.Error("it needs no secret")
	}
}

// A program may have replaced the default transport of net/http, as those do that trace all requests.
func TestNewWithAnotherDefaultTransport(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	http.DefaultTransport = struct{ http.RoundTripper }{before}
	s, err := webhook.New(webhook.Config{URL: "http://127.0.0.1:1", Secret: secret(t)})
	if err != nil {
		t.Fatal(err)
	}
	s.Close(t.Context())
}
