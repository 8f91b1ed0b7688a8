package telemetry

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
)

// server is a Prometheus that runs for one test.
type server struct {
	url    string
	client *http.Client
}

var listeningOn = regexp.MustCompile(`"Listening on".* address=(127\.0\.0\.1:\d+)`)

// startPrometheus starts a Prometheus on a free port that scrapes the target and has the alerts,
// and returns when it is ready.
func startPrometheus(t *testing.T, target string) *server {
	t.Helper()
	folder := t.TempDir()
	alerts, err := filepath.Abs(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`
global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
  - job_name: app
    static_configs: [{targets: [%q]}]
`, alerts, target)
	file := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	said := launch(t, program(t, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address=127.0.0.1:0")
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	s := &server{url: "http://" + addressIn(t, said), client: &http.Client{Transport: transport}}
	s.until(t, "it is ready", func() error {
		_, err := s.get(t, "/-/ready")
		return err
	})
	return s
}

// launch starts a program that ends with the test, and returns its output.
func launch(t *testing.T, program string, args ...string) io.Reader {
	t.Helper()
	runtime.LockOSThread() // the program ends with the thread that has started it
	output, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = input, input, mortal()
	err = cmd.Start()
	input.Close()
	if err != nil {
		output.Close()
		t.Fatalf("cannot run %s: %v", program, err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		output.Close()
		runtime.UnlockOSThread()
	})
	return output
}

// addressIn returns the address on which Prometheus says it listens.
func addressIn(t *testing.T, said io.Reader) string {
	t.Helper()
	var all []string
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if found := listeningOn.FindStringSubmatch(lines.Text()); found != nil {
			go io.Copy(io.Discard, said) // it must not have to wait for a reader
			return found[1]
		}
		all = append(all, lines.Text())
	}
	t.Fatalf("prometheus has ended:\n%s", strings.Join(all, "\n"))
	return ""
}

// until repeats a question until it returns no error.
func (s *server) until(t *testing.T, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("after a minute it is not so that %s: %v", what, err)
		}
	}
}

func (s *server) get(t *testing.T, path string) ([]byte, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", response.Status, body)
	}
	return body, nil
}

// sample is one series of an answer.
type sample struct {
	Metric map[string]string
	Value  [2]any // when, and how much
}

// query evaluates an expression.
func (s *server) query(t *testing.T, expr string) ([]sample, error) {
	t.Helper()
	body, err := s.get(t, "/api/v1/query?query="+url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct{ Result []sample }
	}
	return answer.Data.Result, json.Unmarshal(body, &answer)
}

// A Prometheus scrapes the metrics, and evaluates the expressions of the dashboard and the alerts.
// Before each scrape more events come, so that there is something to see.
func TestPrometheusServer(t *testing.T) {
	p, registry := full(t)
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		telemetrytest.Tell(t, p, telemetrytest.Story...)
		metrics.ServeHTTP(w, r)
	}))
	defer target.Close()
	s := startPrometheus(t, strings.TrimPrefix(target.URL, "http://"))

	s.until(t, "it was scraped three times", func() error {
		got, err := s.query(t, `count_over_time(ratelimit_decisions_total{outcome="denied", model="gpt-4o"}[5m]) >= 3`)
		if err == nil && len(got) == 0 {
			err = fmt.Errorf("there are fewer scrapes")
		}
		return err
	})
	board := readDashboard(t)
	all := board.expressions()
	all["the guide"] = readGuide(t)
	for where, expressions := range all {
		for _, expr := range expressions {
			s.answers(t, where, filledIn(expr))
		}
	}
	s.until(t, "all alerts were evaluated", func() error { return s.alertsEvaluated(t) })
}

// answers fails the test if an expression is not valid, or has no number.
func (s *server) answers(t *testing.T, where, expr string) {
	t.Helper()
	got, err := s.query(t, expr)
	if err != nil || len(got) == 0 {
		t.Errorf("%s: %s: %d series, %v; want some", where, expr, len(got), err)
	}
	for _, each := range got {
		if each.Value[1] == "NaN" {
			t.Errorf("%s: %s is not a number for %v", where, expr, each.Metric)
		}
	}
}

// filledIn returns an expression with values for the variables of Grafana.
func filledIn(expr string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$job", "app", "$model", ".*", "$project", ".*").Replace(expr)
}

// alertsEvaluated returns an error unless every alert was evaluated without one.
func (s *server) alertsEvaluated(t *testing.T) error {
	t.Helper()
	body, err := s.get(t, "/api/v1/rules")
	if err != nil {
		return err
	}
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	evaluated := 0
	for _, group := range answer.Data.Groups {
		for _, r := range group.Rules {
			if r.LastError != "" {
				t.Fatalf("the alert %s: %s", r.Name, r.LastError)
			}
			if r.Health == "ok" {
				evaluated++
			}
		}
	}
	if want := len(readAlerts(t)); evaluated != want {
		return fmt.Errorf("%d of %d alerts were evaluated", evaluated, want)
	}
	return nil
}
