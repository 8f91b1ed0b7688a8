package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

// OTLP says where traces and metrics are sent, beside the metrics for Prometheus.
type OTLP struct {
	Endpoint string        // the URL of a collector
	Token    Secret        // sent as a bearer token; zero: none
	Sample   int           // how many of 100 traces are sent, of those about which the client has not decided
	Metrics  time.Duration // how often metrics are sent; 0: never
}

func readOTLP(p yamlValue) *OTLP {
	o := &OTLP{Sample: 10, Metrics: time.Minute}
	p.Fields(
		field("endpoint", baseURL(&o.Endpoint)),
		field("token", secret(&o.Token)),
		field("sample", strictyaml.Parsed(&o.Sample, "a percentage from 0% to 100%, such as 10%", func(text string) (int, bool) {
			number, ok := strings.CutSuffix(text, "%")
			n, whole := strictyaml.WholeNumber(number)
			return int(n), ok && whole && n >= 0 && n <= 100
		})),
		field("metrics", strictyaml.Duration(&o.Metrics, 0, time.Hour)),
	)
	if o.Endpoint == "" && !p.Faulty() {
		p.Fault("it has no endpoint: it must be the URL of a collector, such as http://127.0.0.1:4318")
	}
	return o
}

// MarshalJSON writes it as the file has it, without the secret.
func (o *OTLP) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Endpoint string `json:"endpoint"`
		Token    Secret `json:"token,omitzero"`
		Sample   string `json:"sample"`
		Metrics  string `json:"metrics"`
	}{o.Endpoint, o.Token, fmt.Sprintf("%d%%", o.Sample), short(o.Metrics)})
}
