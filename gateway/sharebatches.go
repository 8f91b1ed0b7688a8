package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/internal/call"
)

// batchMessage is what gateways that share a store tell each other of a batch: that it was sent, in
// which file its results are, or what they say. A message that is lost leaves the batch charged what
// was reserved.
type batchMessage struct {
	Provider string      `json:"batch_at"` // the first field, by which these messages are known
	ID       string      `json:"id"`
	Project  string      `json:"project"`
	Models   []string    `json:"models,omitempty"` // of a batch that was sent
	At       time.Time   `json:"at,omitzero"`      // by which it is priced
	File     string      `json:"file,omitempty"`
	Total    *call.Total `json:"total,omitempty"`
}

// batchPrefix begins all messages on batches, and no others.
var batchPrefix = []byte(`{"batch_at":`)

// shareBatches begins to exchange messages with the other gateways on the store, if it carries any.
func (g *Gateway) shareBatches() (leave func()) {
	carrier, ok := bus.Of(g.limits.Models.Store())
	if !ok {
		return func() {}
	}
	unsent, done := make(chan batchMessage, maxUnsentBatches), make(chan struct{})
	g.batches.tell = func(m batchMessage) {
		select {
		case unsent <- m:
		default:
			g.warnOfBatch(&m, errors.New("too many messages wait to be sent"))
		}
	}
	go func() {
		defer close(done)
		for m := range unsent {
			g.publishBatch(carrier, &m)
		}
	}()
	unsubscribe, err := carrier.Subscribe(func(text []byte) {
		var m batchMessage
		if bytes.HasPrefix(text, batchPrefix) && json.Unmarshal(text, &m) == nil && m.ID != "" {
			g.batches.receive(m, &g.setup.Load().prices)
		}
	})
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			g.log.Warn("batches of other gateways are not known", "error", err)
		}
		unsubscribe = func() {}
	}
	return func() {
		unsubscribe()
		close(unsent)
		<-done
	}
}

// maxUnsentBatches bounds the messages that wait until the store takes them, so that no call waits.
const maxUnsentBatches = 1024

// publishBatch sends a message to the other gateways.
func (g *Gateway) publishBatch(carrier bus.Bus, m *batchMessage) {
	text, err := json.Marshal(m)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), bookTimeout)
		defer cancel()
		err = carrier.Publish(ctx, text)
	}
	if err != nil {
		g.warnOfBatch(m, err)
	}
}

func (g *Gateway) warnOfBatch(m *batchMessage, err error) {
	g.log.Warn("other gateways were not told of a batch: it may stay charged what was reserved", "batch", m.ID, "error", err)
}

// send tells the other gateways of a batch.
func (o *openBatches) send(m batchMessage) {
	if o.tell != nil {
		o.tell(m)
	}
}

// receive enters what another gateway has told of a batch.
func (o *openBatches) receive(m batchMessage, prices *call.Prices) {
	id := batchID{m.Provider, m.ID}
	known := o.of(id)
	switch {
	case m.Models != nil && known == nil:
		o.add(&openBatch{Batch: call.Announced(prices, m.Provider, m.Models, m.At), project: m.Project, id: id, at: time.Now(), remote: true})
	case known == nil || known.project != m.Project:
	case m.File != "":
		o.setFile(known, batchID{m.Provider, m.File})
	case m.Total != nil && known.remote: // the gateway that has sent the batch settles it
		o.forget(known)
	case m.Total != nil:
		results := known.Results()
		results.Total = *m.Total
		o.settle(known, results)
	}
}

// forget removes a batch of another gateway.
func (o *openBatches) forget(b *openBatch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.remove(b)
}
