package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// module writes a module with one test file.
func module(t *testing.T, test string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.test/m\n\ngo 1.26\n", "m_test.go": "package m\n\nimport \"testing\"\n\n" + test} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The suite prints the result of each package, what failed tests have printed, and the slowest tests without their parts.
func TestSuite(t *testing.T) {
	good := module(t, `func TestGood(t *testing.T) { t.Run("part", func(t *testing.T) { t.Log("silent") }) }`)
	bad := module(t, `func TestBad(t *testing.T) { t.Error("loud") }`+"\n"+`func TestQuiet(t *testing.T) { t.Log("silent") }`)
	broken := module(t, `func TestNo(t *testing.T) { no() }`)
	for name, c := range map[string]struct {
		module, others string
		fails          bool
		want           []string
	}{
		"all pass":   {good, "", false, []string{`(?m)^ok .*example.test/m`, `1 tests; the slowest:\n +\d+\.\d s  example.test/m TestGood\n$`}},
		"one fails":  {bad, good, true, []string{`(?m)loud`, `(?m)^FAIL\s+example.test/m`, `3 tests;`, `\nFAILED: example.test/m TestBad\n$`}},
		"one breaks": {good, broken, true, []string{`undefined: no`, `(?m)^FAIL\s+example.test/m \[build failed\]`, `(?m)^ok .*example.test/m`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(c.module)
			var out strings.Builder
			if err := run([]string{"-modules", c.others}, &out); (err != nil) != c.fails {
				t.Errorf("the error is %v", err)
			}
			for _, want := range c.want {
				if !regexp.MustCompile(want).MatchString(out.String()) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
			if strings.Contains(out.String(), "silent") {
				t.Errorf("what a test that passes has logged is printed:\n%s", out.String())
			}
		})
	}
}

// Plain packages and other modules are tested once, without the race detector, and what fails in one of them does not
// stop the others.
func TestPlain(t *testing.T) {
	raced := "//go:build race\n\npackage m\n\nimport \"testing\"\n\nfunc TestRaced(t *testing.T) {}\n"
	t.Chdir(module(t, `func TestRoot(t *testing.T) {}`))
	bad, good := module(t, `func TestBad(t *testing.T) { t.Error("loud") }`), module(t, `func TestGood(t *testing.T) {}`)
	if err := os.Mkdir("plain", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"race_test.go":                      raced,
		"plain/race_test.go":                raced,
		"plain/plain_test.go":               "package m\n\nimport \"testing\"\n\nfunc TestPlain(t *testing.T) {}\n",
		filepath.Join(good, "race_test.go"): raced,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	err := run([]string{"-plain", "./plain", "-modules", bad + " " + good, "--", "-race", "-trimpath", "-gcflags=-d=checkptr=0"}, &out)
	if err == nil || !strings.Contains(out.String(), "5 tests;") || !strings.Contains(out.String(), "\nFAILED: example.test/m TestBad\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// A race that is printed while a test passes is printed: go test fails the tests that ran beside it.
func TestRace(t *testing.T) {
	var out strings.Builder
	r := &report{out: &out, printed: map[test][]string{}}
	for _, line := range []string{"WARNING: DATA RACE\n", "Write at 0x00c000012345 by goroutine 7:\n"} {
		r.add(event{Action: "output", Package: "m", Test: "TestBeside", Output: line})
	}
	r.add(event{Action: "pass", Package: "m", Test: "TestBeside"})
	if !strings.Contains(out.String(), "goroutine 7") {
		t.Errorf("the race is not printed: %q", out.String())
	}
}
