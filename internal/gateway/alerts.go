package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/webhook"
)

// alerts is an observer that logs when a budget reaches a threshold, and sends that to the webhook of the
// configuration.
type alerts struct {
	g *Gateway

	mu     sync.RWMutex
	to     *webhook.Sender // nil: there is no webhook
	of     config.Webhook  // that it was made from
	ending sync.WaitGroup  // of senders that a reload has replaced
}

// timeToSend is how long a webhook may take for what waits when the gateway stops.
const timeToSend = 5 * time.Second

// Observe implements [event.Observer].
func (a *alerts) Observe(ctx context.Context, e event.Event) {
	if e.Kind != event.Threshold || e.Err != nil { // the metrics have what was missed
		return
	}
	kept := e // Observe is called for every call: only here the event is allocated
	a.g.Publish(&Event{Kind: EventThreshold, Limiter: &kept})
	b := e.Budget
	attributes := []any{"owner", b.Owner, "limit", b.Limit, "percent", b.Percent, "used", amountOf(b, b.Used), "max", amountOf(b, b.Max)}
	if !b.Resets.IsZero() {
		attributes = append(attributes, "resets", b.Resets)
	}
	a.g.log.Warn("a budget has reached a threshold", attributes...)
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.to != nil {
		a.to.Observe(ctx, e)
	}
}

// HasRoom implements [event.Bounded].
func (a *alerts) HasRoom(e event.Event) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.to == nil || a.to.HasRoom(e)
}

// amountOf returns an amount of a budget for people.
func amountOf(b *event.Budget, n int64) string {
	if b.Unit == "dollars" {
		return price.Amount(n).String()
	}
	return fmt.Sprintf("%d %s", n, b.Unit)
}

// send replaces the webhook that messages go to; nil is none. Messages that wait for the webhook before are still sent
// there.
func (a *alerts) send(to *config.Webhook) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if to != nil && a.to != nil && *to == a.of {
		return
	}
	if before := a.to; before != nil {
		a.ending.Go(func() { endSender(before) })
	}
	a.to, a.of = nil, (config.Webhook{})
	if to == nil {
		return
	}
	secret, err := webhook.ParseSecret(to.Secret.Reveal())
	if err == nil {
		a.to, err = webhook.New(webhook.Config{URL: to.URL, Insecure: to.Insecure, Secret: secret, OnResult: a.result})
	}
	if err != nil { // the configuration is valid
		a.g.log.Error("the webhook cannot be used", "error", err)
		return
	}
	a.of = *to
}

// result records what became of a message.
func (a *alerts) result(r webhook.Result) {
	if r.Err == nil {
		a.g.metrics.webhooks.WithLabelValues("done").Inc()
		return
	}
	a.g.metrics.webhooks.WithLabelValues("failed").Inc()
	a.g.log.Error("a webhook did not get a notification of a budget", "id", r.ID, "owner", r.Budget.Owner, "limit", r.Budget.Limit,
		"percent", r.Budget.Percent, "attempts", r.Attempts, "error", r.Err)
}

// close sends what waits, for a short time.
func (a *alerts) close() {
	a.send(nil)
	a.ending.Wait()
}

func endSender(s *webhook.Sender) {
	ctx, cancel := context.WithTimeout(context.Background(), timeToSend)
	defer cancel()
	s.Close(ctx)
}
