package telemetry_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
	"dappco.re/go/core/go-ratelimit/telemetry/opentelemetry"
)

var otelPattern = regexp.MustCompile(`(?m)^//\t((?:ratelimit|gen_ai)\.\S+) +(counter|up-down counter|histogram) `)

// The table of OpenTelemetry's metrics names every one with its kind, and no
// other; and the guide mentions them.
func TestOpenTelemetryDocumented(t *testing.T) {
	o, reader := newMetered(t, opentelemetry.Config{})
	telemetrytest.Tell(t, o, telemetrytest.Story...)
	text, err := os.ReadFile("../../telemetry/opentelemetry/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, found := range otelPattern.FindAllStringSubmatch(string(text), -1) {
		listed[found[1]] = found[2]
	}
	guide, err := os.ReadFile("../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for name, m := range collected(t, reader) {
		made[name] = "histogram"
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
			made[name] = "counter"
			if !sum.IsMonotonic {
				made[name] = "up-down counter"
			}
		}
		if _, ok := m.Data.(metricdata.Sum[float64]); ok {
			made[name] = "counter"
		}
		if !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("the guide does not mention %s", name)
		}
	}
	if diff := cmp.Diff(made, listed); diff != "" {
		t.Errorf("doc.go, -made +listed:\n%s", diff)
	}
}
