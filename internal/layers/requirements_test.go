package layers

import (
	"cmp"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// onlyForTests is the modules that go.mod may require though no code but that of tests
// imports them. They are small and require nothing themselves. Tests that need any other
// module are in interop, which has a go.mod of its own.
var onlyForTests = []string{"pgregory.net/rapid", "go.uber.org/goleak", "github.com/google/go-cmp"}

// Users of the module have what go.mod requires in their own module graph, so each
// requirement is one of code that they may run.
func TestRequirementsAreImported(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	direct, all := requirements(string(text))
	if len(direct) == 0 {
		t.Fatal("no requirement was found in go.mod")
	}
	for _, module := range unimported(importsBelow(t, "../.."), direct, all) {
		if !slices.Contains(onlyForTests, module) {
			t.Errorf("only tests import packages of %s: move these tests to interop", module)
		}
	}
}

func TestUnimported(t *testing.T) {
	direct, all := requirements(`
require example.com/single v1.0.0

require (
	example.com/used v1.2.3
	example.com/used/inner v0.1.0
	example.com/tested v0.0.0-20230129092748-24d4a6f8daec
	example.com/kit/v2 v2.0.0 // for the kit
)

require example.com/indirect v1.0.0 // indirect
`)
	if want := []string{"example.com/single", "example.com/used", "example.com/used/inner", "example.com/tested", "example.com/kit/v2"}; !slices.Equal(direct, want) {
		t.Errorf("direct requirements are %v, want %v", direct, want)
	}
	files := map[string][]string{
		"a.go":       {"example.com/used", "example.com/single/part"},
		"b.go":       {"example.com/indirect/part", "example.com/used/innermost"},
		"a_test.go":  {"example.com/tested", "example.com/used/inner"},
		"kit/kit.go": {"testing", "example.com/kit/v2"},
		"other/c.go": {"example.com/testedandmore", "fmt"},
	}
	if got, want := unimported(files, direct, all), []string{"example.com/used/inner", "example.com/tested", "example.com/kit/v2"}; !slices.Equal(got, want) {
		t.Errorf("only tests import %v, want %v", got, want)
	}
}

// requirement is a line of go.mod that requires a module.
var requirement = regexp.MustCompile(`(?m)^(?:require |\t)(\S+) v\S+(.*)$`)

// requirements returns the modules that a go.mod requires directly, and all.
func requirements(text string) (direct, all []string) {
	for _, found := range requirement.FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
		if !strings.Contains(found[2], "// indirect") {
			direct = append(direct, found[1])
		}
	}
	return direct, all
}

// unimported returns the direct requirements of which no file imports a package, but for
// files of tests: those that go test alone compiles, and those of test kits, which import
// package testing.
func unimported(files map[string][]string, direct, all []string) []string {
	imported := map[string]bool{}
	for file, imports := range files {
		if strings.HasSuffix(file, "_test.go") || slices.Contains(imports, "testing") {
			continue
		}
		for _, name := range imports {
			imported[moduleOf(name, all)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(direct), func(module string) bool { return imported[module] })
}

// moduleOf returns which of the modules has a package: of several, the one with the longest
// path. It is empty if none has.
func moduleOf(imported string, modules []string) (of string) {
	for _, module := range modules {
		if (imported == module || strings.HasPrefix(imported, module+"/")) && len(module) > len(of) {
			of = module
		}
	}
	return of
}

// selfContained is the packages that link the standard library and this module alone, but
// for packages of the modules that are named: whoever limits projects links no database.
var selfContained = map[string][]string{
	"limit": nil, "rate": nil, "store": nil, "llm": nil, "price": nil, "event": nil, "internal/engine": nil, "project": nil, "httplimit": nil,
	"grpclimit": {"google.golang.org"}, // gRPC and its messages
}

func TestSelfContained(t *testing.T) {
	files := importsBelow(t, "../..")
	for folder, allowed := range selfContained {
		for _, found := range foreign(files, folder) {
			if moduleOf(found.imported, allowed) == "" {
				t.Errorf("%s links %s, which %s imports", folder, found.imported, found.by)
			}
		}
	}
}

func TestForeign(t *testing.T) {
	files := map[string][]string{
		"limit/limit.go":      {"time", module + "/internal/a"},
		"limit/limit_test.go": {"example.com/tested"},
		"internal/a/a.go":     {module + "/internal/b", module},
		"internal/b/b.go":     {module + "/internal/a", "example.com/b"},
		"root.go":             {"example.com/root"},
		"limit/part/part.go":  {"example.com/part"},
	}
	want := []link{{"example.com/b", "internal/b"}, {"example.com/root", "."}}
	if got := foreign(files, "limit"); !slices.Equal(got, want) {
		t.Errorf("limit links %q, want %q", got, want)
	}
}

// link is an import of a package of another module, by a package of this one.
type link struct{ imported, by string }

// foreign returns what a package links, directly or not, of neither the standard library nor
// this module.
func foreign(files map[string][]string, folder string) (found []link) {
	linked := []string{folder}
	for i := 0; i < len(linked); i++ {
		for file, imports := range files {
			if path.Dir(file) != linked[i] || strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, imported := range imports {
				inside, ours := within(imported)
				switch {
				case ours && !slices.Contains(linked, inside):
					linked = append(linked, inside)
				case !ours && !standard(imported):
					found = append(found, link{imported, linked[i]})
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b link) int { return cmp.Or(cmp.Compare(a.imported, b.imported), cmp.Compare(a.by, b.by)) })
	return slices.Compact(found)
}
