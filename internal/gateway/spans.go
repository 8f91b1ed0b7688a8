package gateway

import (
	"cmp"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/otlp"
	"dappco.re/go/core/go-ratelimit/llm"
)

// newExporter returns what sends spans and metrics to a collector, or nil if the configuration names none.
func newExporter(cfg *config.Config, instance, version string, m *metrics, log *slog.Logger) *otlp.Exporter {
	o := cfg.OTLP
	if o == nil {
		return nil
	}
	var last atomic.Int64 // when an error was logged, in Unix seconds
	return otlp.New(otlp.Config{
		Endpoint: o.Endpoint, Token: o.Token.Reveal(), Sample: o.Sample, Metrics: o.Metrics, Instance: instance, Version: version, Gatherer: m,
		OnError: func(err error) {
			if now := time.Now().Unix(); now-last.Swap(now) >= 60 {
				log.Warn("the collector does not take traces or metrics", "error", err)
			}
		},
	})
}

// traceField is the header in which clients send the context of a trace.
const traceField = "Traceparent"

// startSpan begins the span of the request, if a collector gets it. The provider gets the span's context in place of the
// client's, unless the client has signed the request.
func (x *exchange) startSpan() {
	if x.g.spans == nil {
		return
	}
	sent := x.r.Header.Get(traceField)
	s := x.g.spans.Start(sent)
	if !s.Sampled {
		return
	}
	x.span = &s
	if sent != "" && !call.Signed(x.r.Header, x.r.URL.RawQuery) {
		x.r.Header[traceField] = []string{s.Parent()}
	}
}

// endSpan sends the span of the request, if it is sampled. It has the names of the conventions for generative AI.
func (x *exchange) endSpan() {
	s := x.span
	if s == nil {
		return
	}
	rec := &x.Record
	operation, provider := operations[x.endpoint.API], x.providerName()
	s.Name, s.Began, s.Took = rec.Method, rec.Time, rec.Took
	s.Failed = rec.Outcome == Failed || rec.Outcome == Cut || rec.Outcome == Lost
	add := func(name string, value any) {
		if value != "" && value != 0 && value != 0.0 && value != false {
			s.Attributes = append(s.Attributes, otlp.Attribute{Name: name, Value: value})
		}
	}
	if operation != "" {
		s.Name = operation + " " + rec.Model
		add("gen_ai.operation.name", operation)
		add("gen_ai.request.model", rec.Model)
		add("gen_ai.usage.input_tokens", rec.Input)
		add("gen_ai.usage.output_tokens", rec.Output)
	}
	add("gen_ai.provider.name", provider)
	add("http.request.method", rec.Method)
	add("url.path", rec.Path)
	add("http.response.status_code", rec.Status)
	if rec.Status >= http.StatusBadRequest {
		add("error.type", string(rec.Outcome))
	}
	add("project_id", rec.path())
	add("ratelimit.request.id", rec.ID)
	add("ratelimit.outcome", string(rec.Outcome))
	add("ratelimit.limit", rec.Limit)
	add("ratelimit.key", rec.Key)
	add("ratelimit.deployment", rec.Deployment)
	add("ratelimit.waited_seconds", rec.Waited.Seconds())
	add("ratelimit.upstream_seconds", rec.Upstream.Seconds())
	add("ratelimit.retries", rec.Retries)
	x.g.spans.End(*s)
}

// observeCall counts the call for a collector, if one gets metrics and the call was sent to a provider. Only calls to
// models count.
func (x *exchange) observeCall() {
	rec := &x.Record
	operation := operations[x.endpoint.API]
	if x.g.spans == nil || operation == "" || !x.sent {
		return
	}
	fault := ""
	switch {
	case rec.Status >= http.StatusBadRequest:
		fault = strconv.Itoa(rec.Status)
	case rec.Outcome != Passed:
		fault = string(rec.Outcome)
	}
	x.g.spans.Observe(otlp.Call{
		Operation: operation, Provider: x.providerName(), Model: rec.Model, Error: fault,
		Took: rec.Took - rec.Waited, Input: rec.Input, Output: rec.Output,
	})
}

// providerName returns the name of the request's provider in the conventions, or "" if it is not known.
func (x *exchange) providerName() string {
	if x.upstream == nil {
		return ""
	}
	return cmp.Or(providerNames[x.upstream.Kind], string(x.upstream.Kind))
}

// operations are the names that the conventions have for what is asked of a model.
var operations = map[dialect.API]string{
	dialect.Chat: "chat", dialect.Responses: "chat", dialect.Messages: "chat", dialect.Converse: "chat", dialect.CohereChat: "chat", dialect.OllamaChat: "chat", dialect.Conversations: "chat",
	dialect.Completions: "text_completion", dialect.OllamaGenerate: "text_completion", dialect.Generate: "generate_content", dialect.Interactions: "generate_content",
	dialect.Invoke: "chat", dialect.Embeddings: "embeddings", dialect.CohereEmbed: "embeddings", dialect.CohereRerank: "rerank",
}

// providerNames are the names of providers in the conventions, where they are not ours.
var providerNames = map[llm.Provider]string{
	dialect.Azure: "azure.ai.openai", dialect.Bedrock: "aws.bedrock", dialect.Gemini: "gcp.gemini", dialect.Mistral: "mistral_ai",
}
