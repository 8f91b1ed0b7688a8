package price

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
)

// tableJSON is made by scripts/prices, whose comments say what is taken from where.
//
//go:embed table.json
var tableJSON []byte

// Known returns the embedded table of the prices that providers publish. It is read once.
func Known() *Table { return known() }

var known = sync.OnceValue(func() *Table {
	t, err := read(tableJSON)
	if err != nil {
		panic("the embedded table of prices: " + err.Error()) // a test reads it
	}
	return t
})

// tableFile is the form of a table as JSON.
type tableFile struct {
	About
	Providers []*provider `json:"providers"`
}

// read reads a table.
func read(text []byte) (*Table, error) {
	var file tableFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	t := &Table{about: file.About, providers: map[string]*provider{}, found: map[request][]Entry{}}
	for _, p := range file.Providers {
		for i, m := range p.Models {
			if m.ID == "" || m.Price == nil {
				return nil, fmt.Errorf("model %d of %s lacks a name or a price", i, p.ID)
			}
		}
		p.index()
		t.providers[p.ID] = p
		t.order = append(t.order, p.ID)
	}
	return t, nil
}
