package docs

import (
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withoutExample is the packages whose functions need a *testing.T, which an example does not have.
var withoutExample = []string{"store/storetest"}

// The reference page of every public package is enough to use it: it has a comment on the package, and an example that
// is run.
func TestPackagesAreDocumented(t *testing.T) {
	folders := map[string][]string{} // the files of each public package
	for _, file := range files(t, ".go") {
		folder := filepath.ToSlash(filepath.Dir(file))
		first, _, _ := strings.Cut(folder, "/")
		if slices.Contains([]string{"cmd", "scripts", "examples", "internal", "interop", "benchmarks", "deploy", "tools"}, first) || strings.Contains(folder, "/internal") {
			continue
		}
		folders[folder] = append(folders[folder], file)
	}
	for folder, names := range folders {
		code := func(name string) bool { return !strings.HasSuffix(name, "_test.go") }
		if !slices.ContainsFunc(names, code) {
			continue // it has tests alone
		}
		comment, examples := described(t, names)
		if !strings.HasPrefix(comment, "Package ") {
			t.Errorf("%s: the package has no comment", folder)
		}
		if examples == 0 && !slices.Contains(withoutExample, folder) {
			t.Errorf("%s: the package has no example with an output", folder)
		}
	}
	if len(folders["limit"]) == 0 || len(folders["."]) == 0 {
		t.Errorf("%d packages, and not limit and the root", len(folders))
	}
}

// described returns the comment on the package of some files, and how many examples with an output they have.
func described(t *testing.T, names []string) (comment string, examples int) {
	t.Helper()
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") {
			comment += file.Doc.Text()
			continue
		}
		for _, e := range doc.Examples(file) {
			if e.Output != "" || e.EmptyOutput {
				examples++
			}
		}
	}
	return comment, examples
}
