// Package otlp sends spans and metrics to a collector: OTLP over HTTP, in JSON. It needs no library, whose code for
// gRPC would be a third of the program.
package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config says where spans and metrics are sent.
type Config struct {
	Endpoint string        // the URL of the collector, without /v1/traces
	Token    string        // sent as a bearer token; empty: none
	Sample   int           // how many of 100 traces are sent, of those about which the client has not decided
	Metrics  time.Duration // how often metrics are sent; 0: never
	Version  string        // of the program
	Instance string        // the name of this gateway

	Gatherer prometheus.Gatherer // has the metrics
	OnError  func(error)         // gets the error if a collector does not take what is sent; it may be nil
}

const (
	maxQueued   = 4096 // spans that wait to be sent; those beyond are dropped
	maxBatch    = 512
	sendEvery   = 2 * time.Second
	sendTimeout = 10 * time.Second
)

// Exporter sends spans and metrics. Make one with New.
type Exporter struct {
	cfg     Config
	http    *http.Client
	queue   chan Span
	stop    chan struct{}
	ended   sync.WaitGroup
	dropped atomic.Uint64
	started time.Time
	calls   *calls // nil: metrics are not sent
}

// New returns an exporter, which sends until Close.
func New(cfg Config) *Exporter {
	e := &Exporter{cfg: cfg, http: &http.Client{Timeout: sendTimeout}, queue: make(chan Span, maxQueued), stop: make(chan struct{}), started: time.Now()}
	e.cfg.Endpoint = strings.TrimSuffix(cfg.Endpoint, "/")
	e.ended.Go(e.sendSpans)
	if cfg.Metrics > 0 {
		e.calls = newCalls()
		e.ended.Go(e.sendMetrics)
	}
	return e
}

// Close sends what waits, and returns when nothing is sent any more.
func (e *Exporter) Close() {
	close(e.stop)
	e.ended.Wait()
	e.http.CloseIdleConnections()
}

// Dropped returns how many spans were not sent: too many waited, or the collector did not take them.
func (e *Exporter) Dropped() uint64 { return e.dropped.Load() }

// End sends a span, if it is sampled.
func (e *Exporter) End(s Span) {
	if !s.Sampled {
		return
	}
	select {
	case e.queue <- s:
	default:
		e.dropped.Add(1)
	}
}

// sendSpans sends spans in batches until the exporter is closed.
func (e *Exporter) sendSpans() {
	tick := time.NewTicker(sendEvery)
	defer tick.Stop()
	var batch []object
	flush := func() {
		if len(batch) == 0 {
			return
		}
		body := object{"resourceSpans": []object{{"resource": e.resource(), "scopeSpans": []object{{"scope": object{"name": "ratelimit gateway"}, "spans": batch}}}}}
		if !e.post("/v1/traces", body) {
			e.dropped.Add(uint64(len(batch)))
		}
		batch = nil
	}
	for {
		select {
		case s := <-e.queue:
			batch = append(batch, s.object())
			if len(batch) >= maxBatch {
				flush()
			}
		case <-tick.C:
			flush()
		case <-e.stop:
			for {
				select {
				case s := <-e.queue:
					batch = append(batch, s.object())
					continue
				default:
				}
				break
			}
			flush()
			return
		}
	}
}

// sendMetrics sends the metrics again and again, and once more at the end.
func (e *Exporter) sendMetrics() {
	tick := time.NewTicker(e.cfg.Metrics)
	defer tick.Stop()
	for ending := false; !ending; {
		select {
		case <-tick.C:
		case <-e.stop:
			ending = true
		}
		families, err := e.gather()
		if err != nil {
			e.failed(err)
		}
		metrics := metricsOf(families, e.started, time.Now())
		e.post("/v1/metrics", object{"resourceMetrics": []object{{"resource": e.resource(), "scopeMetrics": []object{{"scope": object{"name": "ratelimit gateway"}, "metrics": metrics}}}}})
	}
}

// resource describes the program.
func (e *Exporter) resource() object {
	return object{"attributes": []object{
		attribute("service.name", "ratelimit"), attribute("service.version", e.cfg.Version), attribute("service.instance.id", e.cfg.Instance),
	}}
}

// post sends a document to the collector, and reports whether it was taken.
func (e *Exporter) post(path string, body any) bool {
	text, err := json.Marshal(body)
	if err != nil {
		e.failed(err)
		return false
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, e.cfg.Endpoint+path, bytes.NewReader(text))
	if err != nil {
		e.failed(err)
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	if e.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+e.cfg.Token)
	}
	resp, err := e.http.Do(req)
	if err != nil {
		e.failed(err)
		return false
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection can be used again
	if resp.StatusCode >= 300 {
		e.failed(fmt.Errorf("the collector answers %s with status %d", path, resp.StatusCode))
		return false
	}
	return true
}

func (e *Exporter) failed(err error) {
	if e.cfg.OnError != nil {
		e.cfg.OnError(err)
	}
}

// object is a JSON object.
type object = map[string]any

// attribute returns an attribute whose value is a text, a whole number, a number or a truth.
func attribute(name string, value any) object {
	switch value := value.(type) {
	case int:
		return object{"key": name, "value": object{"intValue": fmt.Sprint(value)}}
	case float64:
		return object{"key": name, "value": object{"doubleValue": value}}
	case bool:
		return object{"key": name, "value": object{"boolValue": value}}
	}
	return object{"key": name, "value": object{"stringValue": fmt.Sprint(value)}}
}
