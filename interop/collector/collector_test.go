// Package collector tests what the gateway sends to a collector of OpenTelemetry's, with the collector's own receiver.
package collector

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// received keeps what a collector has taken.
type received struct {
	at      string
	mu      sync.Mutex
	traces  []ptrace.Traces
	metrics []pmetric.Metrics
}

// startCollector starts the receiver of a collector for OTLP over HTTP. It listens at a socket in a file, because it
// does not say which port it got.
func startCollector(t *testing.T) *received {
	t.Helper()
	socket, factory := filepath.Join(t.TempDir(), "otlp"), otlpreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	cfg.Protocols.GRPC = configoptional.None[configgrpc.ServerConfig]()
	cfg.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr = confignet.AddrConfig{Endpoint: socket, Transport: confignet.TransportTypeUnix}
	settings := receiver.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	r := &received{}
	traces, err := consumer.NewTraces(func(_ context.Context, sent ptrace.Traces) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.traces = append(r.traces, sent)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := consumer.NewMetrics(func(_ context.Context, sent pmetric.Metrics) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.metrics = append(r.metrics, sent)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ofTraces, err := factory.CreateTraces(t.Context(), settings, cfg, traces)
	if err != nil {
		t.Fatal(err)
	}
	ofMetrics, err := factory.CreateMetrics(t.Context(), settings, cfg, metrics)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []component.Component{ofTraces, ofMetrics} {
		if err := c.Start(t.Context(), componenttest.NewNopHost()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Shutdown(context.Background()) })
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "collector"})
	proxy.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	r.at = strings.TrimPrefix(server.URL, "http://")
	return r
}

// spans returns all spans that have come, by their names.
func (r *received) spans() map[string]ptrace.Span {
	all := map[string]ptrace.Span{}
	for _, sent := range r.traces {
		for i := range sent.ResourceSpans().Len() {
			list := sent.ResourceSpans().At(i).ScopeSpans().At(0).Spans()
			for k := range list.Len() {
				all[list.At(k).Name()] = list.At(k)
			}
		}
	}
	return all
}

func start(t *testing.T, at, sample string) (g *gateway.Gateway, url string, seen chan http.Header) {
	t.Helper()
	seen = make(chan http.Header, 10)
	mock := mockprovider.New(mockprovider.Config{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		mock.ServeHTTP(w, r)
	}))
	t.Cleanup(provider.Close)
	g, err := gateway.New(gatewaytest.Config(t, `
state: memory
providers: {openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 2}}}}
defaults: {max_wait: 0s}
otlp: {endpoint: "http://`+at+`", sample: `+sample+`, metrics: 1h}
`, provider.URL), gateway.Options{Name: "one", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	clients := httptest.NewServer(g)
	t.Cleanup(clients.Close)
	return g, clients.URL, seen
}

func call(t *testing.T, url string, headers ...string) int {
	t.Helper()
	req, err := http.NewRequest("POST", url+"/openai/v1/chat/completions", strings.NewReader(`{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Project-ID", "acme")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode
}

const (
	trace       = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent      = "00f067aa0ba902b7"
	clientTrace = "00-" + trace + "-" + parent + "-01"
)

// The collector gets a span of each sampled call, with the names of the conventions for generative AI, in the trace of
// the client, which goes on to the provider; and the metrics.
func TestCollector(t *testing.T) {
	r := startCollector(t)
	g, url, seen := start(t, r.at, "0%")
	if status := call(t, url, "Traceparent", clientTrace); status != 200 {
		t.Fatal(status)
	}
	sent := (<-seen).Get("Traceparent")
	if status := call(t, url, "Traceparent", strings.TrimSuffix(clientTrace, "01")+"00"); status != 200 { // the client has not sampled it
		t.Fatal(status)
	}
	if got := (<-seen).Get("Traceparent"); got != strings.TrimSuffix(clientTrace, "01")+"00" {
		t.Errorf("a trace that is not sampled goes on as %s", got)
	}
	call(t, url) // a sample of none
	g.Close()    // sends what waits

	spans := r.spans()
	s, ok := spans["chat gpt-4o"]
	if len(spans) != 1 || !ok {
		t.Fatalf("the collector has %d spans: %v", len(spans), spans)
	}
	if s.TraceID().String() != trace || s.ParentSpanID().String() != parent || sent != "00-"+trace+"-"+s.SpanID().String()+"-01" || s.Kind() != ptrace.SpanKindServer {
		t.Errorf("it is %s in %s below %s; the provider got %s", s.SpanID(), s.TraceID(), s.ParentSpanID(), sent)
	}
	want := map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o", "project_id": "acme",
		"ratelimit.outcome": "passed", "http.request.method": "POST", "http.response.status_code": int64(200), "url.path": "/openai/v1/chat/completions",
	}
	got := s.Attributes().AsRaw()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	for _, name := range []string{"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "ratelimit.request.id"} {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing: %v", name, got)
		}
	}
	if s.EndTimestamp() <= s.StartTimestamp() {
		t.Error("it takes no time")
	}
	checkMetrics(t, r)
}

// checkMetrics checks that counters, gauges and histograms have come as what they are.
func checkMetrics(t *testing.T, r *received) {
	t.Helper()
	found := map[string]pmetric.Metric{}
	for _, sent := range r.metrics {
		resource := sent.ResourceMetrics().At(0)
		if name, _ := resource.Resource().Attributes().Get("service.instance.id"); name.AsString() != "one" {
			t.Errorf("they are of %q", name.AsString())
		}
		list := resource.ScopeMetrics().At(0).Metrics()
		for k := range list.Len() {
			found[list.At(k).Name()] = list.At(k)
		}
	}
	if m, ok := found["ratelimit_decisions_total"]; !ok || !m.Sum().IsMonotonic() || m.Sum().AggregationTemporality() != pmetric.AggregationTemporalityCumulative {
		t.Errorf("ratelimit_decisions_total: %v %+v", ok, m)
	}
	if m, ok := found["ratelimit_model_limit"]; !ok || m.Gauge().DataPoints().Len() == 0 {
		t.Errorf("ratelimit_model_limit: %v", ok)
	}
	checkClientMetrics(t, found)
	m, ok := found["ratelimit_gateway_request_seconds"]
	if !ok {
		t.Fatal("no histogram has come")
	}
	p, sum := m.Histogram().DataPoints().At(0), uint64(0)
	for _, n := range p.BucketCounts().AsRaw() {
		sum += n
	}
	if p.Count() != 3 || sum != 3 || p.BucketCounts().Len() != p.ExplicitBounds().Len()+1 {
		t.Errorf("%d requests, %d in %d buckets with %d bounds", p.Count(), sum, p.BucketCounts().Len(), p.ExplicitBounds().Len())
	}
}

// checkClientMetrics checks the histograms of calls to models, which have the names, units and attributes of the
// conventions for generative AI. The call that was denied is no operation of a provider.
func checkClientMetrics(t *testing.T, found map[string]pmetric.Metric) {
	t.Helper()
	attributes := func(more ...string) map[string]any {
		all := map[string]any{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o"}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	took := found["gen_ai.client.operation.duration"]
	if took == (pmetric.Metric{}) {
		t.Fatal("no duration of operations has come")
	}
	points := took.Histogram().DataPoints()
	if took.Unit() != "s" || points.Len() != 1 || points.At(0).Count() != 2 || points.At(0).Sum() <= 0 || points.At(0).ExplicitBounds().At(0) != 0.01 {
		t.Errorf("gen_ai.client.operation.duration in %s: %d series of %d", took.Unit(), points.Len(), points.At(0).Count())
	}
	testkit.Equal(t, "the attributes of the duration", attributes(), points.At(0).Attributes().AsRaw())
	used := found["gen_ai.client.token.usage"]
	if points = used.Histogram().DataPoints(); used.Unit() != "{token}" || points.Len() != 2 {
		t.Fatalf("gen_ai.client.token.usage in %s: %d series", used.Unit(), points.Len())
	}
	for i, kind := range []string{"input", "output"} {
		p := points.At(i)
		testkit.Equal(t, "the attributes of tokens", attributes("gen_ai.token.type", kind), p.Attributes().AsRaw())
		if p.Count() != 2 || p.Sum() <= 0 || p.ExplicitBounds().Len() != 14 {
			t.Errorf("%s: %d calls with %v tokens", kind, p.Count(), p.Sum())
		}
	}
}

// A denial is a span, and no error of it; a collector that is not there takes nothing from calls.
func TestDenialsAndLosses(t *testing.T) {
	r := startCollector(t)
	g, url, _ := start(t, r.at, "100%")
	for _, want := range []int{200, 200, 429} {
		if status := call(t, url); status != want {
			t.Errorf("%d, want %d", status, want)
		}
	}
	g.Close()
	outcomes := map[string]int{}
	for _, sent := range r.traces {
		list := sent.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		for k := range list.Len() {
			said := list.At(k).Attributes().AsRaw()
			outcomes[fmt.Sprint(said["ratelimit.outcome"], " ", said["ratelimit.limit"])]++
			if list.At(k).Status().Code() == ptrace.StatusCodeError {
				t.Error("a denial is an error")
			}
		}
	}
	testkit.Equal(t, "the outcomes", map[string]int{"passed <nil>": 2, "denied max_rpm": 1}, outcomes)

	g, url, _ = start(t, "127.0.0.1:1", "100%")
	if status := call(t, url); status != 200 {
		t.Errorf("without a collector: %d", status)
	}
	g.Close()
}
