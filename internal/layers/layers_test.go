// Package layers holds the test that keeps the arrows between this module's
// packages pointing down.
package layers

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "dappco.re/go/core/go-ratelimit"

// order is the picture in the README, from the top down: a package may import
// what stands below it. What stands in a folder belongs to the folder's layer,
// unless it has its own.
var order = []string{
	"scripts",
	"examples",
	"cmd",
	"internal/gateway",
	"llmhttp",
	"internal/call",  // what the two share
	"internal/batch", // the calls of batches and their results, for the gateway
	"httplimit",
	"grpclimit",
	"internal/admit", // what the two share
	"telemetry",
	"webhook",
	"internal/scenes", // simulations of the root
	".",               // package ratelimit
	"project",
	"internal/feedback",          // what a provider says, for the root
	"internal/database",          // quotas and usage in SQLite
	"internal/statefile",         // quotas and usage in YAML
	"internal/state",             // what is kept in files and tables
	"internal/engine/fleettests", // its tests with several nodes
	"internal/engine",            // the engine of the two
	"internal/fair",              // how the engine divides what is shared
	"internal/decision",          // what the engine answers
	"event",
	"internal/mockprovider",
	"internal/tokencount", // for the root
	"price",
	"internal/dialect", // what providers say on the wire
	"llm",
	"store",
	"internal/transaction", // what a SQLite store and internal/database share
	"internal/accounts",    // what all stores share
	"rate",
	"limit",
	"internal", // what packages share, and tests
}

// kits are what the tests of a package share with those in interop. Each stands in the
// layer of its package.
var kits = map[string]string{
	"internal/gatewaytest":   "internal/gateway",
	"internal/llmhttptest":   "llmhttp",
	"internal/telemetrytest": "telemetry",
}

// pure packages import the standard library alone, and their tests these.
var (
	pure     = []string{"limit", "rate"}
	forTests = []string{"pgregory.net/rapid", "go.uber.org/goleak", module + "/internal/alone", module + "/internal/testkit"}
)

func TestImportsPointDown(t *testing.T) {
	for file, imports := range importsBelow(t, "../..") {
		layer := layerOf(path.Dir(file))
		if layer < 0 {
			t.Errorf("%s is in no layer: add its folder to order", file)
			continue
		}
		for _, imported := range imports {
			if fault := faultOf(file, layer, imported); fault != "" {
				t.Errorf("%s imports %s: %s", file, imported, fault)
			}
		}
	}
}

// light packages are imported by programs that need neither a database nor YAML.
var (
	light = []string{"project", "httplimit", "grpclimit", "telemetry"}
	heavy = []string{"modernc.org/", "github.com/redis/", module + "/internal/strictyaml"}
)

func TestLightPackagesLinkNothingHeavy(t *testing.T) {
	imports := map[string][]string{} // of each package, without its tests
	for file, imported := range importsBelow(t, "../..") {
		if !strings.HasSuffix(file, "_test.go") {
			of := path.Join(module, path.Dir(file))
			imports[of] = append(imports[of], imported...)
		}
	}
	for _, folder := range light {
		linked := []string{path.Join(module, folder)}
		for i := 0; i < len(linked); i++ {
			for _, imported := range imports[linked[i]] {
				if slices.ContainsFunc(heavy, func(prefix string) bool { return strings.HasPrefix(imported, prefix) }) {
					t.Errorf("%s links %s, which %s imports", folder, imported, linked[i])
				}
				if !slices.Contains(linked, imported) {
					linked = append(linked, imported)
				}
			}
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		file, imported string
		fine           bool
	}{
		{"limit/limit.go", "math/bits", true},
		{"limit/limit.go", module + "/rate", false},
		{"limit/limit.go", "github.com/redis/rueidis", false},
		{"limit/limit_test.go", "pgregory.net/rapid", true},
		{"limit/limit_test.go", "github.com/redis/rueidis", false},
		{"limit/example_test.go", module + "/limit", true},
		{"rate/rate.go", "pgregory.net/rapid", false},
		{"rate/rate.go", module + "/limit", false},
		{"store/memory.go", module + "/limit", true},
		{"store/redisstore/redis.go", module + "/store", true},
		{"store/redisstore/redis.go", "github.com/redis/rueidis", true},
		{"store/memory.go", module, false},
		{"ratelimit.go", module + "/store/sqlitestore", true},
		{"ratelimit.go", module + "/project", true},
		{"ratelimit.go", module + "/internal/gateway", false},
		{"internal/gateway/proxy.go", module, true},
		{"httplimit/refusal.go", module + "/internal/admit", true},
		{"internal/admit/admit.go", module + "/project", true},
		{"project/limiter.go", module + "/internal/admit", false},
		{"project/limiter.go", module + "/internal/engine", true},
		{"project/limiter.go", module, false},
		{"project/limiter_test.go", module, false},
		{"internal/engine/take.go", module + "/store", true},
		{"internal/engine/take.go", module + "/project", false},
		{"internal/fair/line.go", module + "/project", false},
		{"internal/llmhttptest/world.go", module + "/llmhttp", true},
		{"llmhttp/limits_test.go", module + "/internal/llmhttptest", true},
		{"project/limiter_test.go", module + "/internal/llmhttptest", false},
	} {
		fault := faultOf(c.file, layerOf(path.Dir(c.file)), c.imported)
		if fine := fault == ""; fine != c.fine {
			t.Errorf("%s imports %s: fine is %v (%s)", c.file, c.imported, fine, fault)
		}
	}
}

// faultOf says what is wrong with an import, if anything is.
func faultOf(file string, layer int, imported string) string {
	inside, ours := within(imported)
	isPure := slices.Contains(pure, order[layer])
	switch {
	case ours && layerOf(inside) < layer:
		return "that is a layer above"
	case isPure && !standard(imported) && inside != order[layer] && !allowedInTest(file, imported):
		return order[layer] + " may import the standard library alone"
	}
	return ""
}

// within returns the folder of one of this module's packages.
func within(imported string) (folder string, ours bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func allowedInTest(file, imported string) bool {
	return strings.HasSuffix(file, "_test.go") && slices.Contains(forTests, imported)
}

// layerOf returns the place of a folder in order, or -1.
func layerOf(folder string) int {
	if of, ok := kits[folder]; ok {
		folder = of
	}
	for {
		if own := slices.Index(order, folder); own >= 0 || folder == "." {
			return own
		}
		folder = path.Dir(folder)
	}
}

// ownModule reports whether a folder is a module of its own.
func ownModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// importsBelow returns the imports of every Go file of the module.
func importsBelow(t *testing.T, root string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if entry.IsDir() {
			if relative != "." && ownModule(name) || slices.Contains([]string{".git", "internal/layers"}, relative) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(relative, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		found[relative] = []string{}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			found[relative] = append(found[relative], imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(slices.Collect(maps.Keys(found)), "limit/limit.go") {
		t.Fatal("the walk did not find limit/limit.go")
	}
	return found
}
