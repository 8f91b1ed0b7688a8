package telemetry

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

var update = flag.Bool("update", false, "write testdata/exposition.txt anew")

// exposition returns the text of a scrape.
func exposition(t *testing.T, from prometheus.Gatherer) string {
	t.Helper()
	scrape := httptest.NewRecorder()
	promhttp.HandlerFor(from, promhttp.HandlerOpts{}).ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if scrape.Code != http.StatusOK {
		t.Fatal(scrape.Code, scrape.Body)
	}
	return scrape.Body.String()
}

// The exposition is compared with a golden file. Dashboards and alerts depend on its names and
// labels, so a change here affects their owners.
func TestExposition(t *testing.T) {
	const golden = "testdata/exposition.txt"
	_, registry := full(t)
	got := exposition(t, registry)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got (write it anew with -update):\n%s", diff)
	}
}

func TestExpositionLint(t *testing.T) {
	_, registry := full(t)
	promtool(t, exposition(t, registry), "check", "metrics")
}
