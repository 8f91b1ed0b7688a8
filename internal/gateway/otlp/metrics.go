package otlp

import (
	"math"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// cumulative says that values count from the start of the program on.
const cumulative = 2

// metricsOf returns metrics as OTLP has them in JSON, by the same names.
func metricsOf(families []*dto.MetricFamily, started, now time.Time) []object {
	list := []object{}
	for _, f := range families {
		m := object{"name": f.GetName(), "description": f.GetHelp(), "unit": units[f.GetName()]}
		points := []object{}
		for _, each := range f.Metric {
			if p := pointOf(each); p != nil {
				p["startTimeUnixNano"], p["timeUnixNano"], p["attributes"] = nanos(started), nanos(now), labelsOf(each)
				points = append(points, p)
			}
		}
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			m["sum"] = object{"aggregationTemporality": cumulative, "isMonotonic": true, "dataPoints": points}
		case dto.MetricType_GAUGE:
			m["gauge"] = object{"dataPoints": points}
		case dto.MetricType_HISTOGRAM:
			m["histogram"] = object{"aggregationTemporality": cumulative, "dataPoints": points}
		default:
			continue
		}
		list = append(list, m)
	}
	return list
}

// pointOf returns the value of a series, or nil if JSON cannot have it.
func pointOf(m *dto.Metric) object {
	switch {
	case m.Histogram != nil:
		return histogramOf(m.Histogram)
	case m.Counter != nil:
		return numberOf(m.Counter.GetValue())
	case m.Gauge != nil:
		return numberOf(m.Gauge.GetValue())
	}
	return nil
}

func numberOf(n float64) object {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return nil
	}
	return object{"asDouble": n}
}

// histogramOf returns a histogram, whose buckets do not include those before them.
func histogramOf(h *dto.Histogram) object {
	counts, bounds, before := []string{}, []float64{}, uint64(0)
	for _, b := range h.Bucket {
		if math.IsInf(b.GetUpperBound(), 1) {
			continue
		}
		bounds = append(bounds, b.GetUpperBound())
		counts = append(counts, strconv.FormatUint(b.GetCumulativeCount()-before, 10))
		before = b.GetCumulativeCount()
	}
	counts = append(counts, strconv.FormatUint(h.GetSampleCount()-before, 10))
	return object{"count": strconv.FormatUint(h.GetSampleCount(), 10), "sum": h.GetSampleSum(), "bucketCounts": counts, "explicitBounds": bounds}
}

func labelsOf(m *dto.Metric) []object {
	list := []object{}
	for _, l := range m.Label {
		if l.GetValue() != "" {
			list = append(list, attribute(l.GetName(), l.GetValue()))
		}
	}
	return list
}
