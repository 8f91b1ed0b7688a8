package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// code is what the Go files of the repository declare.
type code struct {
	packages map[string]map[string]bool // names of a package's level, by the package's name
	members  map[string]map[string]bool // methods and fields, by the name of their type
	names    map[string]bool            // all of these
}

// goCode reads the Go files of the repository, tests aside. Types of the same name in
// several packages have their members together.
func goCode(t *testing.T) *code {
	t.Helper()
	c := &code{map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]bool{}}
	for _, path := range files(t, ".go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			c.add(file.Name.Name, d)
		}
	}
	return c
}

func (c *code) add(pkg string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			c.note(c.packages, pkg, d.Name)
			return
		}
		ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool { // *T, T[K]: the first name is the type's
			of, ok := n.(*ast.Ident)
			if ok {
				c.note(c.members, of.Name, d.Name)
			}
			return !ok
		})
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				c.note(c.packages, pkg, s.Names...)
			case *ast.TypeSpec:
				c.note(c.packages, pkg, s.Name)
				c.addType(s)
			}
		}
	}
}

func (c *code) addType(s *ast.TypeSpec) {
	fields := &ast.FieldList{}
	switch u := s.Type.(type) {
	case *ast.StructType:
		fields = u.Fields
	case *ast.InterfaceType:
		fields = u.Methods
	}
	for _, f := range fields.List {
		c.note(c.members, s.Name.Name, f.Names...)
	}
}

func (c *code) note(in map[string]map[string]bool, of string, names ...*ast.Ident) {
	if in[of] == nil {
		in[of] = map[string]bool{}
	}
	for _, name := range names {
		in[of][name.Name], c.names[name.Name] = true, true
	}
}
