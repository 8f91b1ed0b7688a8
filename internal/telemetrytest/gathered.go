package telemetrytest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Gathered returns the value of each series, by its name and labels in Prometheus's text format. A
// histogram has two values, its sum and its count.
func Gathered(t testing.TB, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			labels := ""
			for _, l := range m.Label {
				labels += "," + l.GetName() + "=" + l.GetValue()
			}
			if labels != "" {
				labels = "{" + labels[1:] + "}"
			}
			name := family.GetName()
			switch {
			case m.Counter != nil:
				values[name+labels] = m.Counter.GetValue()
			case m.Gauge != nil:
				values[name+labels] = m.Gauge.GetValue()
			case m.Histogram != nil:
				values[name+"_sum"+labels] = m.Histogram.GetSampleSum()
				values[name+"_count"+labels] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return values
}
