package telemetry

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	dashboardFile = "grafana/dashboard.json"
	alertsFile    = "prometheus/alerts.yml"
	alertsTest    = "prometheus/alerts_test.yml"
	guideFile     = "../docs/telemetry.md"
)

// dashboard is the part of a dashboard that the tests read.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Panels []panel
}

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ RefID, Expr, LegendFormat string }
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	return d
}

// expressions returns the expressions of the panels, by their titles.
func (d *dashboard) expressions() map[string][]string {
	all := map[string][]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], target.Expr)
		}
	}
	return all
}

type rule struct{ Alert, Expr string }

// alert is a rule in the file of alerts, whose expression stands on a line, or on several
// behind a |.
var alert = regexp.MustCompile(`(?m)^ +- alert: (\w+)\n +expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)`)

func readAlerts(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var rules []rule
	for _, found := range alert.FindAllStringSubmatch(string(text), -1) {
		rules = append(rules, rule{Alert: found[1], Expr: found[2] + found[3]})
	}
	if n := strings.Count(string(text), "alert:"); n == 0 || n != len(rules) {
		t.Fatalf("%d of %d alerts were read of %s", len(rules), n, alertsFile)
	}
	return rules
}

// readGuide returns the expressions in the operator's guide.
func readGuide(t *testing.T) (expressions []string) {
	t.Helper()
	text, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range promqlPattern.FindAllStringSubmatch(string(text), -1) {
		expressions = append(expressions, found[1])
	}
	if len(expressions) == 0 {
		t.Fatal("the guide has no expressions")
	}
	return expressions
}

// exported returns the names of all metrics, with the labels of each.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	_, registry := full(t)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{"ratelimit_gateway_webhooks_total": {"result"}} // which the gateway exports, and tests
	for _, family := range families {
		var labels []string
		for _, label := range family.Metric[0].Label {
			labels = append(labels, label.GetName())
		}
		name := family.GetName()
		all[name] = labels
		if family.Metric[0].Histogram != nil {
			delete(all, name)
			all[name+"_bucket"] = append(slices.Clone(labels), "le")
			all[name+"_sum"], all[name+"_count"] = labels, labels
		}
	}
	return all
}

var (
	namePattern    = regexp.MustCompile(`\bratelimit_\w+`)
	matcherPattern = regexp.MustCompile(`\b(ratelimit_\w+)\{([^}]*)\}`)
	labelPattern   = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	byPattern      = regexp.MustCompile(`\bby\s*\(([^)]*)\)`)
	promqlPattern  = regexp.MustCompile("(?s)```promql\n(.*?)\n```")
	legendPattern  = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
)

// checkExpression reports names in an expression that are not exported.
func checkExpression(t *testing.T, where, expr string, metrics map[string][]string) {
	t.Helper()
	names := namePattern.FindAllString(expr, -1)
	if len(names) == 0 {
		t.Errorf("%s: %q names no metric of ours", where, expr)
	}
	labels := targetLabels()
	for _, name := range names {
		if _, ok := metrics[name]; !ok {
			t.Errorf("%s: nobody exports %s", where, name)
		}
		labels = append(labels, metrics[name]...)
	}
	for _, matcher := range matcherPattern.FindAllStringSubmatch(expr, -1) {
		for _, label := range labelPattern.FindAllStringSubmatch(matcher[2], -1) {
			if !slices.Contains(append(targetLabels(), metrics[matcher[1]]...), label[1]) {
				t.Errorf("%s: %s has no label %s", where, matcher[1], label[1])
			}
		}
	}
	for _, by := range byPattern.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(by[1], ",") {
			if !slices.Contains(labels, strings.TrimSpace(label)) {
				t.Errorf("%s: no metric of %q has a label %s", where, expr, label)
			}
		}
	}
}

// targetLabels are the labels that Prometheus adds to every scraped series.
func targetLabels() []string { return []string{"job", "instance"} }

func TestDashboardExpressions(t *testing.T) {
	d, metrics := readDashboard(t), exported(t)
	shown := map[string]bool{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			checkExpression(t, p.Title, target.Expr, metrics)
			for _, name := range namePattern.FindAllString(target.Expr, -1) {
				shown[name] = true
			}
			for _, label := range legendPattern.FindAllStringSubmatch(target.LegendFormat, -1) {
				by := byPattern.FindStringSubmatch(target.Expr)
				if label[1] != "instance" && (by == nil || !strings.Contains(by[1], label[1])) {
					t.Errorf("%s: the legend %q has a label that %q drops", p.Title, target.LegendFormat, target.Expr)
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		query, _ := v.Query.(map[string]any)
		if text, ok := query["query"].(string); ok {
			checkExpression(t, "$"+v.Name, text, metrics)
		}
	}
	for _, name := range []string{
		"ratelimit_decisions_total", "ratelimit_wait_seconds_bucket", "ratelimit_estimate_error_ratio_bucket",
		"ratelimit_model_used", "ratelimit_model_limit", "ratelimit_model_paused_seconds", "ratelimit_store_lost",
		"ratelimit_provider_throttled_total", "ratelimit_quota_lowered_total", "ratelimit_quota_learned_total",
		"ratelimit_project_share", "ratelimit_project_share_used", "ratelimit_project_share_lent", "ratelimit_project_share_borrowed",
	} {
		if !shown[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// The dashboard has what Grafana requires for an import.
func TestDashboardLayout(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 38 {
		t.Errorf("uid %q, title %q, schema %d: want some, and a schema of Grafana 10 (38)", d.UID, d.Title, d.SchemaVersion)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if p.ID == 0 || ids[p.ID] {
			t.Errorf("%s: the id %d is none, or another's", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.RefID == "" || refs[target.RefID] {
				t.Errorf("%s: the refId %q is none, or another's", p.Title, target.RefID)
			}
			refs[target.RefID] = true
		}
		at := p.GridPos
		if at.W < 1 || at.H < 1 || at.X < 0 || at.Y < 0 || at.X+at.W > 24 {
			t.Errorf("%s does not fit into 24 columns: %+v", p.Title, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if on := taken[[2]int{x, y}]; on != "" {
					t.Fatalf("%s lies on %s", p.Title, on)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

func TestGuideExpressions(t *testing.T) {
	metrics := exported(t)
	for _, expr := range readGuide(t) {
		checkExpression(t, guideFile, expr, metrics)
	}
}

func TestAlertExpressions(t *testing.T) {
	metrics := exported(t)
	tested, err := os.ReadFile(alertsTest)
	if err != nil {
		t.Fatal(err)
	}
	rules := readAlerts(t)
	if len(rules) == 0 {
		t.Fatal("there are no alerts")
	}
	for _, r := range rules {
		checkExpression(t, r.Alert, r.Expr, metrics)
		if !strings.Contains(string(tested), "alertname: "+r.Alert+"\n        exp_alerts:") {
			t.Errorf("%s: no test of it expects an alert", r.Alert)
		}
	}
	promtool(t, "", "check", "rules", alertsFile)
	promtool(t, "", "test", "rules", alertsTest)
}

// What the dashboard shows as a share is between 0 and 1, for mixed traffic too.
func TestDashboardShares(t *testing.T) {
	d := readDashboard(t)
	for _, c := range []struct {
		panel  string
		series map[string]string // each with what it grows by a minute
		want   map[string]float64
	}{
		{
			"Denied",
			map[string]string{
				`ratelimit_decisions_total{job="app", outcome="admitted", shadow="false"}`: "0+45x10",
				`ratelimit_decisions_total{job="app", outcome="denied", shadow="false"}`:   "0+15x10",
				`ratelimit_decisions_total{job="app", outcome="admitted", shadow="true"}`:  "0+600x10",
				`ratelimit_decisions_total{job="app", outcome="denied", shadow="true"}`:    "0+300x10",
			},
			map[string]float64{"{}": 0.25},
		},
		{
			"Used of what was reserved",
			map[string]string{
				`ratelimit_estimated_tokens_total{job="app", model="m", project=""}`:          "0+1000x10",
				`ratelimit_compared_tokens_total{job="app", model="m", project=""}`:           "0+250x10",
				`ratelimit_used_tokens_total{job="app", model="m", project="", type="input"}`: "0+1600x10",
			},
			map[string]float64{`{model="m"}`: 0.25},
		},
	} {
		expressions := d.expressions()[c.panel]
		if len(expressions) != 1 {
			t.Errorf("%s: %d expressions, want 1", c.panel, len(expressions))
			continue
		}
		checkValue(t, strings.ReplaceAll(filledIn(expressions[0]), "[1m]", "[5m]"), c.series, c.want)
	}
}

// checkValue lets promtool evaluate an expression after ten minutes.
func checkValue(t *testing.T, expr string, series map[string]string, want map[string]float64) {
	t.Helper()
	type object = map[string]any
	var input, samples []object
	for name, values := range series {
		input = append(input, object{"series": name, "values": values})
	}
	for labels, value := range want {
		samples = append(samples, object{"labels": labels, "value": value})
	}
	text, err := json.Marshal(object{"tests": []object{{
		"interval":         "1m",
		"input_series":     input,
		"promql_expr_test": []object{{"expr": expr, "eval_time": "10m", "exp_samples": samples}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "test.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "test", "rules", file)
}

// The table in the package's documentation and the operator's guide name every metric, and no
// other.
func TestDocumented(t *testing.T) {
	_, registry := full(t)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, family := range families {
		names[family.GetName()] = true
	}
	metrics := exported(t)
	for _, file := range []string{"doc.go", guideFile} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		missing := maps.Clone(names)
		for _, name := range namePattern.FindAllString(string(text), -1) {
			delete(missing, name)
			if _, series := metrics[name]; !series && !names[name] {
				t.Errorf("%s: nobody exports %s", file, name)
			}
		}
		for name := range missing {
			t.Errorf("%s does not mention %s", file, name)
		}
	}
}
