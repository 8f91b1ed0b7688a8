// Package webhook sends messages about budgets that reach their thresholds, signed as Standard
// Webhooks (https://www.standardwebhooks.com) says.
//
// A [Sender] is an observer: it sends a message for each event of the kind [event.Threshold]. A
// receiver checks messages with [Secret.Verify].
package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/fairqueue"
	"dappco.re/go/core/go-ratelimit/internal/loopback"
)

// Config says where a [Sender] sends messages.
type Config struct {
	// URL is the address of the receiver. It must be https, or http on this machine, unless
	// Insecure is set.
	URL      string
	Insecure bool

	Secret Secret // signs messages

	// OnResult is called with what became of each message, on the sender's goroutine or on that of
	// the event. It may be nil.
	OnResult func(Result)
}

// Result is what became of a message.
type Result struct {
	ID       string // of the message: its webhook-id
	Budget   event.Budget
	Attempts int
	Err      error // why it was not delivered; nil: it was
}

// Errors of messages that were not tried, or not tried again.
var (
	ErrFull   = errors.New("ratelimit: too many messages wait for the webhook")
	ErrClosed = errors.New("ratelimit: the webhook is closed")
)

const (
	mostMessages = 1024 // that wait
	mostOfGroup  = 64   // of these, that are about budgets of one group: see [fairqueue.GroupOf]
	timeout      = 10 * time.Second
	mostAttempts = 12
	mostAge      = time.Hour // of a message that is tried again
	firstDelay   = time.Second
	mostDelay    = 5 * time.Minute
)

// Sender delivers messages one after another, on a goroutine of its own that runs while there are any.
// It never delays a call. A message that the receiver does not take, with a status from 200 to 299
// within ten seconds, is sent again up to 12 times within an hour, after one second and then after
// twice the time before, up to five minutes, less up to half of it at random.
//
// At most 1024 messages wait, and of these at most 64 about projects that are directly below the same one,
// such as its users. A threshold for which there is no room is reported when a later call finds the budget there.
type Sender struct {
	cfg    Config
	client *http.Client
	first  time.Duration // firstDelay, but in tests

	mu      sync.Mutex
	queue   fairqueue.Queue[*message]
	running chan struct{} // is closed when the goroutine ends; nil: none runs
	closed  bool

	closing chan struct{} // is closed by Close: nothing is tried again
	ctx     context.Context
	cancel  context.CancelFunc
}

var _ event.Bounded = (*Sender)(nil)

// New returns a sender. Close it when done.
func New(cfg Config) (*Sender, error) {
	if err := CheckURL(cfg.URL, cfg.Insecure); err != nil {
		return nil, err
	}
	if cfg.Secret.key == nil {
		return nil, errors.New("ratelimit: a webhook needs a secret: see ParseSecret")
	}
	s := &Sender{cfg: cfg, first: firstDelay, closing: make(chan struct{}), queue: fairqueue.Queue[*message]{Most: mostMessages, Each: mostOfGroup}}
	s.client = &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConns: 1, IdleConnTimeout: time.Minute},
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// CheckURL returns what is wrong with the address of a receiver, or nil. The error does not show the
// address, which may hold a secret.
func CheckURL(address string, insecure bool) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("ratelimit: it is no address: it must be https:// and a host, and a path where one is needed")
	case u.Scheme == "http" && !insecure && !loopback.Is(u.Host):
		return errors.New("ratelimit: others could read what is sent to http://: it must be https://, or an address of this machine")
	}
	return nil
}

// Observe sends a message if the event says that a budget has reached a threshold.
func (s *Sender) Observe(_ context.Context, e event.Event) {
	if e.Kind != event.Threshold || e.Err != nil || e.Budget == nil {
		return
	}
	m := newMessage(&e, time.Now())
	if err := s.add(fairqueue.GroupOf(e.Budget.Owner, e.Project), m); err != nil {
		s.result(m, err)
	}
}

// HasRoom reports whether a message about an event may wait.
func (s *Sender) HasRoom(e event.Event) bool {
	if e.Budget == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.HasRoom(fairqueue.GroupOf(e.Budget.Owner, e.Project))
}

func (s *Sender) add(group string, m *message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if !s.queue.Add(group, m) {
		return ErrFull
	}
	if s.running == nil {
		s.running = make(chan struct{})
		go s.deliverAll(s.running)
	}
	return nil
}

// next returns the message that is to be delivered next, or nil.
func (s *Sender) next() *message {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.queue.Next()
	if !ok {
		s.running = nil
	}
	return m
}

// deliverAll delivers all messages of the queue.
func (s *Sender) deliverAll(done chan struct{}) {
	defer close(done)
	delay := s.first
	for m := s.next(); m != nil; m = s.next() {
		err := s.deliver(m)
		for err != nil && m.attempts < mostAttempts && time.Since(m.made) < mostAge && s.wait(delay) {
			delay = min(2*delay, mostDelay)
			err = s.deliver(m)
		}
		if err == nil {
			delay = s.first
		}
		s.result(m, err)
	}
}

// wait waits before a message is tried again. It reports whether it may be.
func (s *Sender) wait(delay time.Duration) bool {
	timer := time.NewTimer(delay - rand.N(delay/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.closing:
		return false
	}
}

// deliver sends a message once.
func (s *Sender) deliver(m *message) error {
	m.attempts++
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.cfg.URL, bytes.NewReader(m.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "go-ratelimit")
	s.cfg.Secret.setHeaders(req.Header, m.id, time.Now(), m.body)
	res, err := s.client.Do(req)
	if err != nil {
		return hideURL(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be used again
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("ratelimit: the webhook has answered %d: it must be from 200 to 299", res.StatusCode)
	}
	return nil
}

// hideURL returns an error of a request without its address, which may hold a secret.
func hideURL(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}

func (s *Sender) result(m *message, err error) {
	if s.cfg.OnResult != nil {
		s.cfg.OnResult(Result{m.id, m.budget, m.attempts, err})
	}
}

// Close delivers what waits, each message once more at most, until ctx ends. What is left then fails.
func (s *Sender) Close(ctx context.Context) {
	s.mu.Lock()
	first, running := !s.closed, s.running
	s.closed = true
	s.mu.Unlock()
	if first {
		close(s.closing)
	}
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
			s.cancel()
			<-running
		}
	}
	s.cancel()
	s.client.CloseIdleConnections()
}
