package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"slices"
	"strings"
	"testing"
)

// checkLinked expects that the program links the modules of linked.txt, no others, and nothing that keeps the linker
// from leaving methods out.
func checkLinked(t *testing.T, program []byte) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("scripts/release/linked.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Split(string(text), "\n")
	for _, m := range info.Deps {
		at := slices.Index(listed, m.Path)
		if at < 0 {
			t.Errorf("the program links %s, which scripts/release/linked.txt does not list: do without it, or add it there", m.Path)
			continue
		}
		listed = slices.Delete(listed, at, at+1)
	}
	for _, line := range listed {
		if line != "" && !strings.HasPrefix(line, "#") {
			t.Errorf("scripts/release/linked.txt lists %s, which the program does not link", line)
		}
	}
	const byName = "text/template.(*state).evalField"
	if bytes.Contains(program, []byte(byName)) {
		t.Errorf("the program links %s, which calls methods by name: so it keeps all methods of all types, and is a third larger", byName)
	}
}
