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
		modules string
		fails   bool
		want    []string
	}{
		"all pass":   {good, false, []string{`(?m)^ok .*example.test/m`, `1 tests; the slowest:\n +\d+\.\d s  example.test/m TestGood\n$`}},
		"one fails":  {bad + " " + good, true, []string{`(?m)loud`, `(?m)^FAIL\s+example.test/m`, `3 tests;`, `\nFAILED: example.test/m TestBad\n$`}},
		"one breaks": {broken + " " + good, true, []string{`undefined: no`, `(?m)^FAIL\s+example.test/m \[build failed\]`, `(?m)^ok .*example.test/m`}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := run([]string{"-modules", c.modules}, &out); (err != nil) != c.fails {
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

// A package in a plain folder of a module is tested once, without the race detector.
func TestPlainInAModule(t *testing.T) {
	whole := module(t, `func TestRoot(t *testing.T) {}`)
	t.Chdir(whole)
	if err := os.Mkdir("plain", 0o700); err != nil {
		t.Fatal(err)
	}
	test := "package plain\n\nimport \"testing\"\n\nfunc TestPlain(t *testing.T) {}\n"
	if err := os.WriteFile("plain/plain_test.go", []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run([]string{"-modules", ".", "-plain", "plain"}, &out); err != nil || !strings.Contains(out.String(), "2 tests;") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// Plain folders are tested without the race detector, and what fails in one of them does not stop the others.
func TestPlain(t *testing.T) {
	plain := module(t, `func TestPlain(t *testing.T) {}`)
	raced := "//go:build race\n\npackage m\n\nimport \"testing\"\n\nfunc TestRaced(t *testing.T) { t.Error(\"raced\") }\n"
	if err := os.WriteFile(filepath.Join(plain, "race_test.go"), []byte(raced), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := module(t, `func TestBad(t *testing.T) { t.Error("loud") }`)
	for folders, fails := range map[string]bool{plain: false, bad + " " + plain: true} {
		var out strings.Builder
		if err := run([]string{"-modules", "", "-plain", folders, "--", "-race", "-gcflags=-d=checkptr=0"}, &out); (err != nil) != fails {
			t.Errorf("the error is %v", err)
		}
		if !strings.Contains(out.String(), "TestPlain") || strings.Contains(out.String(), "TestRaced") {
			t.Errorf("%s", out.String())
		}
	}
}
