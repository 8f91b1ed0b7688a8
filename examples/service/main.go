// Command service shows a service with limits per project: a server with the middleware and
// metrics, and the answers that its clients get.
//
//	service                          send a few requests, and show the answers
//	service -listen 127.0.0.1:8080   serve until interrupted, to try with curl
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/httplimit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/telemetry"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func main() {
	listen := flag.String("listen", "", "serve at this `address` until interrupted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *listen); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, listen string) error {
	handler, limiter, err := newService()
	if err != nil {
		return err
	}
	defer limiter.Close()
	address := listen
	if listen == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	base := "http://" + listener.Addr().String()
	if listen == "" {
		err = show(w, base)
	} else {
		fmt.Fprintf(w, "Try: curl -i -H 'X-Project-ID: acme' %s/hello   and: curl %s/metrics\n", base, base)
		select {
		case <-ctx.Done():
		case err = <-served:
			return err
		}
	}
	ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(ending))
}

// newService returns the service: /hello, which has limits, and /metrics.
func newService() (http.Handler, *project.Limiter, error) {
	registry := prometheus.NewRegistry()
	metrics, err := telemetry.NewPrometheus(telemetry.PrometheusConfig{Registerer: registry, Projects: []string{"acme"}})
	if err != nil {
		return nil, nil, err
	}
	limiter, err := project.NewWithConfig(project.Config{
		Default:  &project.Limit{RequestsPerMinute: 3, RequestsPerDay: 1000},
		Limits:   map[string]project.Limit{"acme": {RequestsPerMinute: 5, RequestsPerDay: 10_000}},
		Observer: metrics,
	})
	if err != nil {
		return nil, nil, err
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello,", r.Header.Get(httplimit.HeaderProjectID))
	})
	mux := http.NewServeMux()
	mux.Handle("GET /hello", httplimit.Middleware(limiter)(hello))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux, limiter, nil
}

// show sends requests to the service, and shows the answers.
func show(w io.Writer, base string) error {
	for _, each := range []struct {
		project string
		times   int
	}{{"acme", 7}, {"another", 1}, {"", 1}} {
		fmt.Fprintf(w, "Project %q asks %d times\n", each.project, each.times)
		for range each.times {
			if err := ask(w, base+"/hello", each.project); err != nil {
				return err
			}
		}
	}
	return showMetrics(w, base+"/metrics")
}

// showMetrics shows the metrics of the requests.
func showMetrics(w io.Writer, url string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	fmt.Fprintln(w, "What Prometheus would see")
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "ratelimit_decisions_total") {
			fmt.Fprintln(w, " ", lines.Text())
		}
	}
	return lines.Err()
}

func ask(w io.Writer, url, projectID string) error {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if projectID != "" {
		request.Header.Set(httplimit.HeaderProjectID, projectID)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	line := "  " + response.Status
	for _, name := range []string{"RateLimit", "Retry-After"} {
		if value := response.Header.Get(name); value != "" {
			line += " · " + name + ": " + value
		}
	}
	fmt.Fprintln(w, line)
	if response.StatusCode >= 400 {
		fmt.Fprintln(w, "   ", strings.TrimSpace(string(body)))
	}
	return nil
}
