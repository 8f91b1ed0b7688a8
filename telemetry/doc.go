// Package telemetry tells of what is limited: to Prometheus, and with
// OpenTelemetry. Give its observers to the Config of a limiter.
//
//	metrics, err := telemetry.NewPrometheus(telemetry.PrometheusConfig{})
//	…
//	rl, err := ratelimit.NewWithConfig(ratelimit.Config{Observer: metrics})
//	…
//	prometheus.MustRegister(telemetry.NewModelCollector(rl))
//	http.Handle("/metrics", promhttp.Handler())
//
// Both at a time are ratelimit.Observers{metrics, traces}. A store that you make
// tells them with ratelimit.OnStoreEvent.
//
// # Prometheus
//
// What [Prometheus] exports:
//
//	ratelimit_decisions_total               counter    outcome, limit, model, project, shadow
//	ratelimit_wait_seconds                  histogram  outcome, model
//	ratelimit_used_tokens_total             counter    model, project, type
//	ratelimit_estimated_tokens_total        counter    model, project
//	ratelimit_compared_tokens_total         counter    model, project
//	ratelimit_estimate_error_ratio          histogram  model
//	ratelimit_cancelled_total               counter    model, project
//	ratelimit_provider_throttled_total      counter    model, cause
//	ratelimit_quota_lowered_total           counter    model, limit
//	ratelimit_quota_learned_total           counter    model, limit
//	ratelimit_store_lost                    gauge
//	ratelimit_store_losses_total            counter
//	ratelimit_store_lost_decisions_total    counter    mode, outcome
//	ratelimit_store_reconciled_keys_total   counter
//	ratelimit_store_reconciled_units_total  counter
//	ratelimit_store_missed_events_total     counter
//
// And what a collector from [NewModelCollector] does:
//
//	ratelimit_model_used                    gauge      model, dimension
//	ratelimit_model_limit                   gauge      model, dimension
//	ratelimit_model_paused_seconds          gauge      model
//
// Labels have these values:
//
//	outcome    admitted, denied, refused (not valid: no limit was asked), left (the
//	           caller has, while it waited), lost (the store could not be asked);
//	           docs/glossary.md explains them
//	limit      which has denied the call, as in ratelimit.Event; empty for none
//	model      one with a quota; "other"; empty for calls without one
//	project    one of those in the config; "other"; empty for calls without one
//	shadow     "true" for calls that go on even if they are denied
//	type       input, output
//	cause      rate_limit, day_limit, spend_cap, overload: why a provider has
//	           throttled a call; "other"
//	mode       deny, allow, share: what the store was told to do when lost
//	dimension  rpm, tpm, rpd, input_tpm, output_tpm, tpd, concurrent
//
// Clients cannot make more series, whatever they send: models without a quota are
// "other", and so are models beyond the first hundred and projects that are not
// listed.
//
// grafana/dashboard.json and prometheus/alerts.yml use them; docs/telemetry.md
// is the guide to both.
//
// # OpenTelemetry
//
// [OpenTelemetry] makes a span rate_limiter.allow of each decision, below the one
// in its context, as long as the call has waited. The status is Ok for calls that
// are admitted, and Error where the store could not be asked. Attributes:
//
//	project_id                whose call it is
//	gen_ai.request.model      which it is for
//	limit_exceeded            which limit has denied it
//	remaining_minute          requests that the project has left in this minute
//	ratelimit.outcome         as the label above
//	ratelimit.shadow          as the label above
//	ratelimit.waited_seconds  how long it has waited
//
// Those that are not known are left out. Metrics, bounded as above, with the same
// meaning as those for Prometheus:
//
//	ratelimit.decisions               counter          ratelimit.outcome, ratelimit.limit, ratelimit.shadow, gen_ai.request.model, project_id
//	ratelimit.wait.duration           histogram        ratelimit.outcome, gen_ai.request.model; seconds
//	gen_ai.client.token.usage         histogram        gen_ai.token.type, gen_ai.request.model
//	ratelimit.estimated_tokens        counter          gen_ai.request.model, project_id
//	ratelimit.compared_tokens         counter          gen_ai.request.model, project_id
//	ratelimit.estimate.error          histogram        gen_ai.request.model
//	ratelimit.cancelled               counter          gen_ai.request.model, project_id
//	ratelimit.provider.throttled      counter          gen_ai.request.model, ratelimit.cause
//	ratelimit.quota.lowered           counter          gen_ai.request.model, ratelimit.limit
//	ratelimit.quota.learned           counter          gen_ai.request.model, ratelimit.limit
//	ratelimit.store.lost              up-down counter  none
//	ratelimit.store.losses            counter          none
//	ratelimit.store.decisions         counter          ratelimit.mode, ratelimit.outcome
//	ratelimit.store.reconciled.keys   counter          none
//	ratelimit.store.reconciled.units  counter          none
//	ratelimit.store.missed_events     counter          none
package telemetry
