package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	os.Exit(m.Run())
}

// tiny measures next to nothing: these tests are about what is measured, not about how fast it is.
func tiny() *bench {
	return &bench{slice: time.Millisecond, rounds: 2, shrink: 1000, step: func(string) {}}
}

func TestEveryContestantHasARow(t *testing.T) {
	names := func(all []contestant) []string {
		var out []string
		for _, c := range all {
			out = append(out, c.name)
		}
		return out
	}
	var waiting []string
	for _, w := range waiters() {
		waiting = append(waiting, w.name)
	}
	passing := []string{nameDirect}
	for _, p := range proxies() {
		passing = append(passing, p.name)
	}
	var spending []string
	for _, s := range spenders {
		spending = append(spending, s.name)
	}
	var viewing []string
	for _, calls := range []string{"", ", calls"} {
		for _, v := range viewers {
			viewing = append(viewing, v.name+calls)
		}
	}
	large := []string{"1,000", "10,000", "100,000", "1,000,000"}
	want := map[string][]string{
		"hot/admitted":          names(single()),
		"hot/denied":            names(denying(single())),
		"hot/admitted/parallel": names(single()),
		"hot/denied/parallel":   names(denying(single())),
		"keyed/100k/uniform":    names(keyed()),
		"keyed/100k/zipf":       names(keyed()),
		"keyed/1M/uniform":      names(keyed()),
		"keyed/1M/zipf":         names(keyed()),
		"memory":                append(names(keyed()), nameLimit+", worst size"),
		"wait/1k":               waiting,
		"wait/10k":              waiting,
		"wait/100k":             waiting,
		"wait/1M":               waiting,
		"sqlite":                {nameProcesses, nameSeparate, nameCombined},
		"redis/hot":             {nameEvalsha, nameOnce, nameRedisStore, "redis_rate", "throttled", "ulule/limiter"},
		"redis/1k":              {nameEvalsha, nameOnce, nameRedisStore, "redis_rate", "throttled", "ulule/limiter"},
		"redis/calls":           {"one project, 1 caller", "one project, 64 callers", "one project, 256 callers", "100 projects, 64 callers"},
		"heap/projects":         large,
		"heap/requests":         large,
		"llmhttp/call":          {nameTransport, nameLLMHTTP, nameElsewhere},
		"llmhttp/call/parallel": {nameTransport, nameLLMHTTP, nameElsewhere},
		"gateway/json":          passing,
		"gateway/json/alone":    passing,
		"gateway/sse":           passing,
		"gateway/sse/alone":     passing,
		"gateway/budget":        spending,
		"gateway/viewers":       viewing,
		"gateway/streams":       passing[1:],
		"allocs":                names(append(doors(), denying(append(limiters(), peers()...))...)),
	}
	for _, m := range media() {
		for _, d := range dimensions {
			if d.alone && m.name != "memory" {
				continue
			}
			for _, n := range d.sizes {
				if n <= m.most || d.alone {
					name := growthPrefix + m.name + "/" + d.name
					want[name] = append(want[name], growthName(n))
				}
			}
		}
	}
	all, err := runAll(tiny(), scenarios(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all.reports {
		var got []string
		for _, row := range r.rows {
			got = append(got, row.name)
			if len(row.cells) != len(r.columns) {
				t.Errorf("%s: %s has %d cells for %d columns", r.name, row.name, len(row.cells), len(r.columns))
			}
		}
		if !slices.Equal(got, want[r.name]) {
			t.Errorf("%s: rows\n%q, want\n%q", r.name, got, want[r.name])
		}
		delete(want, r.name)
	}
	for name := range want {
		t.Errorf("no report %s", name)
	}
	testPlots(t, all.reports)
}

func testPlots(t *testing.T, reports []report) {
	dir := t.TempDir()
	if err := writePlots(dir, reports, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, f := range figures() {
		svg, err := os.ReadFile(filepath.Join(dir, f.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if err := xml.Unmarshal(svg, new(struct{})); err != nil {
			t.Errorf("%s is not XML: %v", f.file, err)
		}
		for _, p := range f.panels {
			if !strings.Contains(string(svg), p.title) {
				t.Errorf("%s does not show %q", f.file, p.title)
			}
		}
	}
}

func TestPlotsOfOneScenarioAlone(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	if status := Main([]string{"-run", "^hot/denied$", "-time", "1ms", "-plots", dir}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("half a figure was drawn: %v", files)
	}
	for _, want := range []string{"HOT/DENIED", "REQUIRED FIGURES", nameXTime} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &stdout)
		}
	}
	if !strings.Contains(stderr.String(), "[1/1]") {
		t.Errorf("no progress on stderr: %q", &stderr)
	}
}

func TestCommandLine(t *testing.T) {
	for _, test := range []struct {
		args   []string
		status int
		stdout string
		stderr string
	}{
		{[]string{"-list"}, 0, "keyed/1M ", ""},
		{[]string{"-list", "-run", "memory"}, 0, "memory ", ""},
		{[]string{"-h"}, 0, "", "go run . -list"},
		{[]string{"-nonsense"}, 2, "", "flag provided but not defined: -nonsense"},
		{[]string{"-run", "nothing like it"}, 2, "", "matches no scenario"},
		{[]string{"-run", "("}, 2, "", "missing closing )"},
		{[]string{"-time", "0s"}, 2, "", "must be longer than nothing"},
		{[]string{"-time", "soon"}, 2, "", "invalid value"},
		{[]string{"hot"}, 2, "", `unexpected argument "hot"`},
		{[]string{"-run", "allocs", "-plots", "main.go/plots"}, 1, "", "the directory for plots"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if status := Main(test.args, &stdout, &stderr); status != test.status {
				t.Errorf("status %d, want %d", status, test.status)
			}
			if !strings.Contains(stdout.String(), test.stdout) {
				t.Errorf("stdout %q, want %q in it", &stdout, test.stdout)
			}
			if !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("stderr %q, want %q in it", &stderr, test.stderr)
			}
		})
	}
}

func TestBestWaitingPeer(t *testing.T) {
	us, a, b, c := waiter{name: "us", kind: ours}, waiter{name: "a", kind: peer}, waiter{name: "b", kind: peer}, waiter{name: "c", kind: peer}
	all := []waiter{us, a, b, c}
	at := func(achieved, cpu float64) grants {
		return grants{achieved: achieved, cpuEach: cpu}
	}
	for _, test := range []struct {
		name string
		got  []grants
		want string
	}{
		{"the thriftiest that reaches the limit", []grants{at(1, 1), at(0.6, 2), at(1, 5), at(1, 4)}, "c"},
		{"the thriftiest of all where none does", []grants{at(1, 1), at(0.6, 3), at(0.9, 2), at(0.7, 4)}, "b"},
		{"not one that exceeds it, where none reaches it", []grants{at(1, 1), {achieved: 2, over: 7, cpuEach: 2}, at(0.9, 9), at(0.8, 8)}, "c"},
		{"no peer where all exceed it", []grants{at(1, 1), {achieved: 2, over: 7}, {achieved: 2, over: 7}, {achieved: 2, over: 7}}, "no peer"},
		{"one that exceeds it does not reach it", []grants{at(1, 1), {achieved: 1, over: 7, cpuEach: 2}, at(1, 9), at(1, 8)}, "c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, name := bestWaitingPeer(all, test.got); name != test.want {
				t.Errorf("%s, want %s", name, test.want)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(test.of); got != test.want {
			t.Errorf("median of %v: %v, want %v", test.of, got, test.want)
		}
	}
}
