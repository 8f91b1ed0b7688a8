package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// shown matches the output of the example, in which seconds may have passed.
var shown = regexp.MustCompile(`^Project "acme" asks 7 times
  200 OK · RateLimit: "requests_per_minute";r=4;t=\d+, "requests_per_day";r=9999;t=\d+
  200 OK · RateLimit: "requests_per_minute";r=3;t=\d+, "requests_per_day";r=9998;t=\d+
  200 OK · RateLimit: "requests_per_minute";r=2;t=\d+, "requests_per_day";r=9997;t=\d+
  200 OK · RateLimit: "requests_per_minute";r=1;t=\d+, "requests_per_day";r=9996;t=\d+
  200 OK · RateLimit: "requests_per_minute";r=0;t=\d+, "requests_per_day";r=9995;t=\d+
(  429 Too Many Requests · RateLimit: "requests_per_minute";r=0;t=\d+ · Retry-After: \d+
    \{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",.*"violated-policies":\["requests_per_minute"\]\}
){2}Project "another" asks 1 times
  200 OK · RateLimit: "requests_per_minute";r=2;t=\d+, "requests_per_day";r=999;t=\d+
Project "" asks 1 times
  400 Bad Request
    \{.*the header X-Project-ID is missing.*\}
What Prometheus would see
(  ratelimit_decisions_total\{.*\} \d
){4}$`)

func TestShow(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, ""); err != nil {
		t.Fatal(err)
	}
	if !shown.MatchString(out.String()) {
		t.Errorf("it shows:\n%s", &out)
	}
}

// With -listen, the example serves until it is interrupted, and has metrics of its requests.
func TestServe(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, write, "127.0.0.1:0")
		write.Close()
	}()
	hint := make([]byte, 200)
	n, err := read.Read(hint)
	if err != nil {
		t.Fatal(err)
	}
	base := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(string(hint[:n]))
	if err := ask(io.Discard, base+"/hello", "acme"); err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := `ratelimit_decisions_total{limit="",model="",outcome="admitted",project="acme",shadow="false"} 1`; !strings.Contains(string(metrics), want) {
		t.Errorf("no %s in\n%s", want, metrics)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
