// Package opentelemetry exports what a limiter decides and counts with OpenTelemetry: a span for each
// decision, and metrics. Give its observer to the Config of a limiter.
//
//	traces, err := opentelemetry.New(opentelemetry.Config{})
//	…
//	rl, err := ratelimit.NewWithConfig(ratelimit.Config{Observer: traces})
//
// For Prometheus too, use event.Observers{metrics, traces} with an observer of package telemetry. It is a
// package of its own so that programs with Prometheus alone do not link OpenTelemetry.
//
// # Spans
//
// An [Observer] makes a span rate_limiter.allow for each decision, as a child of
// the span in its context, which lasts as long as the call has waited. The status is
// Ok for admitted calls, and Error where the store could not be asked. Attributes:
//
//	project_id                the project of the call
//	gen_ai.request.model      the model of the call
//	limit_exceeded            the limit that denied it
//	remaining_minute          requests that the project has left in this minute
//	ratelimit.outcome         as the label of the same name in package telemetry
//	ratelimit.shadow          as the label of the same name in package telemetry
//	ratelimit.waited_seconds  how long the call has waited
//
// Unknown ones are left out.
//
// # Metrics
//
// The metrics have the same meaning and the same bounds as those for Prometheus:
//
//	ratelimit.decisions               counter          ratelimit.outcome, ratelimit.limit, ratelimit.shadow, gen_ai.request.model, project_id
//	ratelimit.wait.duration           histogram        ratelimit.outcome, gen_ai.request.model; seconds
//	gen_ai.client.token.usage         histogram        gen_ai.token.type, gen_ai.request.model
//	ratelimit.estimated_tokens        counter          gen_ai.request.model, project_id
//	ratelimit.compared_tokens         counter          gen_ai.request.model, project_id
//	ratelimit.estimate.error          histogram        gen_ai.request.model
//	ratelimit.used_dollars            counter          gen_ai.request.model, project_id
//	ratelimit.denied_dollars          counter          gen_ai.request.model, project_id
//	ratelimit.cancelled               counter          gen_ai.request.model, project_id
//	ratelimit.provider.throttled      counter          gen_ai.request.model, ratelimit.cause
//	ratelimit.quota.lowered           counter          gen_ai.request.model, ratelimit.limit
//	ratelimit.quota.learned           counter          gen_ai.request.model, ratelimit.limit
//	ratelimit.thresholds              counter          project_id, ratelimit.owner, ratelimit.limit, ratelimit.percent
//	ratelimit.thresholds.missed       counter          none
//	ratelimit.store.lost              up-down counter  none
//	ratelimit.store.losses            counter          none
//	ratelimit.store.decisions         counter          ratelimit.mode, ratelimit.outcome
//	ratelimit.store.reconciled.keys   counter          none
//	ratelimit.store.reconciled.units  counter          none
//	ratelimit.store.missed_events     counter          none
package opentelemetry
