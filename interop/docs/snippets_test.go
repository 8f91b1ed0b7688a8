// Package docs holds the test that compiles the Go code in the documentation. It is in this module,
// because some of the code uses SDKs.
package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "dappco.re/go/core/go-ratelimit"
)

// imports are the packages that snippets use, by their names.
var imports = map[string]string{
	"anthropic": "github.com/anthropics/anthropic-sdk-go", "anthropicoption": "github.com/anthropics/anthropic-sdk-go/option",
	"context": "context", "errors": "errors", "event": module + "/event", "fmt": "fmt", "genai": "google.golang.org/genai", "grpc": "google.golang.org/grpc",
	"grpclimit": module + "/grpclimit", "http": "net/http", "httplimit": module + "/httplimit", "limit": module + "/limit",
	"llm": module + "/llm", "llmhttp": module + "/llmhttp", "math": "math", "netip": "net/netip",
	"openai": "github.com/openai/openai-go/v3", "option": "github.com/openai/openai-go/v3/option", "project": module + "/project",
	"prometheus": "github.com/prometheus/client_golang/prometheus", "promhttp": "github.com/prometheus/client_golang/prometheus/promhttp",
	"rate": module + "/rate", "ratelimit": module, "redisstore": module + "/store/redisstore", "strconv": "strconv",
	"telemetry": module + "/telemetry", "opentelemetry": module + "/telemetry/opentelemetry", "time": "time", "webhook": module + "/webhook", "slog": "log/slog",
}

// given are the names that documents use without declaring them.
const given = `package snippets

import (
	"context"
	"net/http"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

var (
	ctx          context.Context
	rl           *ratelimit.RateLimiter
	limiter      *project.Limiter
	mux          *http.ServeMux
	api, handler http.Handler
	r, req       *http.Request
	w            http.ResponseWriter
	resp         *http.Response
	addr         string
	body         []byte
	errorBody    []byte
)

type used struct{ Prompt, Output int }

func send(context.Context) (u used, err error) { return }
func userOf(*http.Request) (user string)       { return }
func costOf(*http.Request) (cost int64)        { return }
`

// Every Go snippet compiles. Those of a document are compiled in order, so that each may use what
// those before it declare.
func TestSnippetsCompile(t *testing.T) {
	folder := t.TempDir()
	overlay := map[string]string{}
	add := func(name, text string) {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at, err := filepath.Abs(filepath.Join("snippets", name))
		if err != nil {
			t.Fatal(err)
		}
		overlay[at] = file
	}
	add("given.go", given)
	count := 0
	for i, path := range documents(t) {
		if text, n := program(t, path); n > 0 {
			add(fmt.Sprintf("document%d.go", i), text)
			count += n
		}
	}
	if count < 15 {
		t.Errorf("only %d snippets were found", count)
	}
	for _, fault := range compile(t, folder, overlay) {
		t.Error(fault)
	}
}

// A snippet that does not compile is found, with its line.
func TestBadSnippet(t *testing.T) {
	folder := t.TempDir()
	document := filepath.Join(folder, "bad.md")
	if err := os.WriteFile(document, []byte("# Bad\n\n```go\nlimit.Nothing()\n```\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, _ := program(t, document)
	file := filepath.Join(folder, "bad.go")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at, _ := filepath.Abs("snippets/bad.go")
	faults := compile(t, folder, map[string]string{at: file})
	if len(faults) != 1 || !strings.Contains(faults[0], "bad.md:4") || !strings.Contains(faults[0], "limit.Nothing") {
		t.Errorf("the faults are %q", faults)
	}
}

// documents returns the paths of the documents that people read.
func documents(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(all) < 15 {
		t.Fatalf("%d documents: %v", len(all), err)
	}
	return append(all, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"))
}

var (
	snippet   = regexp.MustCompile("(?s)```go\n(.*?)```")
	remark    = regexp.MustCompile(`(?m)(^|\s)//.*$`)
	qualifier = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
)

// program returns a Go file with the snippets of a document, and how many there are.
func program(t *testing.T, path string) (text string, count int) {
	t.Helper()
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var body strings.Builder
	names := map[string]bool{}
	for _, at := range snippet.FindAllSubmatchIndex(document, -1) {
		code := string(document[at[2]:at[3]])
		line := 1 + strings.Count(string(document[:at[2]]), "\n")
		fmt.Fprintf(&body, "{\n//line %s:%d\n%s\n", path, line, shown(code))
		for _, found := range qualifier.FindAllStringSubmatch(remark.ReplaceAllString(code, ""), -1) {
			names[found[1]] = imports[found[1]] != ""
		}
		count++
	}
	var header strings.Builder
	header.WriteString("package snippets\n\nimport (\n")
	for name, known := range names {
		if known {
			fmt.Fprintf(&header, "%s %q\n", name, imports[name])
		}
	}
	fmt.Fprintf(&header, ")\n\nfunc _() error {\n%s%s\npanic(0)\n}\n", body.String(), strings.Repeat("}\n", count))
	return header.String(), count
}

// shown returns a snippet without what is there for readers alone: ellipses and imports.
func shown(code string) string {
	lines := strings.Split(strings.TrimSuffix(code, "\n"), "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) == "…" || strings.HasPrefix(line, "import ") {
			lines[i] = ""
		}
		lines[i] = strings.NewReplacer(", …}", "}", "{…}", "{}", "(…)", "()").Replace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// ownFlags returns the flags that this test was built with, so that what the snippets import is compiled
// already.
func ownFlags() (flags []string) {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" || s.Key == "-gcflags" || s.Key == "-trimpath" {
			flags = append(flags, s.Key+"="+s.Value)
		}
	}
	return flags
}

// compile returns what the compiler says, but for variables that a snippet declares and does not use.
func compile(t *testing.T, folder string, overlay map[string]string) (faults []string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", append(append([]string{"build"}, ownFlags()...), "-gcflags=-e", "-overlay", file, "./snippets")...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "declared and not used") {
			faults = append(faults, strings.TrimSpace(line))
		}
	}
	if err == nil && len(faults) > 0 {
		t.Fatalf("it compiles, and says %q", faults)
	}
	return slices.Compact(faults)
}
