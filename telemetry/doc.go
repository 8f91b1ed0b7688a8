// Package telemetry exports what a limiter decides and counts to Prometheus. Give its
// observer to the Config of a limiter. Package telemetry/opentelemetry does the same for
// OpenTelemetry, with traces.
//
//	metrics, err := telemetry.NewPrometheus(telemetry.PrometheusConfig{})
//	…
//	rl, err := ratelimit.NewWithConfig(ratelimit.Config{Observer: metrics})
//	…
//	prometheus.MustRegister(telemetry.NewModelCollector(rl))
//	http.Handle("/metrics", promhttp.Handler())
//
// For several observers at once, use event.Observers{metrics, traces}. For the events of a
// store that you make yourself, use event.OfStore.
//
// [Prometheus] exports:
//
//	ratelimit_decisions_total               counter    outcome, limit, model, project, shadow
//	ratelimit_wait_seconds                  histogram  outcome, model
//	ratelimit_used_tokens_total             counter    model, project, type
//	ratelimit_used_dollars_total            counter    model, project
//	ratelimit_denied_dollars_total          counter    model, project
//	ratelimit_estimated_tokens_total        counter    model, project
//	ratelimit_compared_tokens_total         counter    model, project
//	ratelimit_estimate_error_ratio          histogram  model
//	ratelimit_cancelled_total               counter    model, project
//	ratelimit_provider_throttled_total      counter    model, cause
//	ratelimit_quota_lowered_total           counter    model, limit
//	ratelimit_quota_learned_total           counter    model, limit
//	ratelimit_thresholds_total              counter    project, owner, limit, percent
//	ratelimit_thresholds_missed_total       counter
//	ratelimit_store_lost                    gauge
//	ratelimit_store_losses_total            counter
//	ratelimit_store_lost_decisions_total    counter    mode, outcome
//	ratelimit_store_reconciled_keys_total   counter
//	ratelimit_store_reconciled_units_total  counter
//	ratelimit_store_missed_events_total     counter
//
// A collector from [NewModelCollector] exports:
//
//	ratelimit_model_used                    gauge      model, dimension
//	ratelimit_model_limit                   gauge      model, dimension
//	ratelimit_model_paused_seconds          gauge      model
//
// A collector from [NewShareCollector] exports:
//
//	ratelimit_project_share                 gauge      model, project, dimension
//	ratelimit_project_share_used            gauge      model, project, dimension
//	ratelimit_project_share_lent            gauge      model, project, dimension
//	ratelimit_project_share_borrowed        gauge      model, project, dimension
//	ratelimit_project_waiting               gauge      model, project
//
// A collector from [NewBudgetCollector] exports:
//
//	ratelimit_budget_used                   gauge      project, dimension
//	ratelimit_budget_reserved               gauge      project, dimension
//	ratelimit_budget_limit                  gauge      project, dimension
//
// Labels have these values:
//
//	outcome    admitted, denied, refused (the call is not valid: no limit was asked),
//	           left (the caller left while the call waited), lost (the store could
//	           not be asked); docs/glossary.md explains them
//	limit      the limit that denied the call, as in event.Event; empty for none
//	model      a model with a quota; "other"; empty for calls without a model
//	project    a project in the config; "other"; empty for calls without a project
//	shadow     "true" for calls that go on even if they are denied
//	owner      whose budget has reached a threshold: project, key, run
//	percent    the threshold
//	type       input, output
//	cause      why a provider has throttled a call: rate_limit, day_limit, spend_cap,
//	           overload, other
//	mode       what the limiter does while the store is lost: deny, allow, share
//	dimension  rpm, tpm, rpd, input_tpm, output_tpm, tpd, concurrent
//
// The number of series is bounded, whatever clients send: models without a quota,
// models beyond the first hundred and projects that are not listed are "other".
//
// grafana/dashboard.json and prometheus/alerts.yml use them; docs/telemetry.md
// is the guide to both.
package telemetry
