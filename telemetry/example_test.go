package telemetry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/telemetry"
)

func ExamplePrometheus() {
	registry := prometheus.NewRegistry() // without one it is prometheus.DefaultRegisterer
	metrics, err := telemetry.NewPrometheus(telemetry.PrometheusConfig{Registerer: registry})
	if err != nil {
		fmt.Println(err)
		return
	}
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{
		Quotas:   map[string]ratelimit.ModelQuota{"gpt-4o": {MaxRPM: 1}},
		Observer: metrics,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	registry.MustRegister(telemetry.NewModelCollector(rl))

	res, _ := rl.TryAcquire("gpt-4o", 1000)
	res.Commit(900, 300)
	rl.TryAcquire("gpt-4o", 1000) // one too many

	scrape := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(scrape.Body.String()) {
		if strings.HasPrefix(line, "ratelimit_decisions") || strings.HasPrefix(line, "ratelimit_used") || strings.HasPrefix(line, "ratelimit_model") {
			fmt.Print(line)
		}
	}
	// Output:
	// ratelimit_decisions_total{limit="",model="gpt-4o",outcome="admitted",project="",shadow="false"} 1
	// ratelimit_decisions_total{limit="max_rpm",model="gpt-4o",outcome="denied",project="",shadow="false"} 1
	// ratelimit_model_limit{dimension="max_rpm",model="gpt-4o"} 1
	// ratelimit_model_paused_seconds{model="gpt-4o"} 0
	// ratelimit_model_used{dimension="max_rpm",model="gpt-4o"} 1
	// ratelimit_used_tokens_total{model="gpt-4o",project="",type="input"} 900
	// ratelimit_used_tokens_total{model="gpt-4o",project="",type="output"} 300
}
