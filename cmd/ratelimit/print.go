package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// printJSON writes a value as indented JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table is rows of cells under a head.
type table struct {
	head []string // the column of a name that begins with ">" is right-aligned
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// lines returns the table in columns that are as wide as their widest cell.
func (t *table) lines() []string {
	head := make([]string, len(t.head))
	widths := make([]int, len(t.head))
	for i, name := range t.head {
		head[i] = strings.TrimPrefix(name, ">")
		widths[i] = utf8.RuneCountInString(head[i])
	}
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var all []string
	for _, row := range append([][]string{head}, t.rows...) {
		var line strings.Builder
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if strings.HasPrefix(t.head[i], ">") {
				line.WriteString(space + cell)
			} else {
				line.WriteString(cell + space)
			}
			line.WriteString("  ")
		}
		all = append(all, strings.TrimRight(line.String(), " "))
	}
	return all
}

// withoutEmpty returns the table without the columns that have the given cell in every row.
func (t *table) withoutEmpty(cell string) *table {
	kept := &table{rows: make([][]string, len(t.rows))}
	for i, name := range t.head {
		all := true
		for _, row := range t.rows {
			all = all && row[i] == cell
		}
		if all {
			continue
		}
		kept.head = append(kept.head, name)
		for j, row := range t.rows {
			kept.rows[j] = append(kept.rows[j], row[i])
		}
	}
	return kept
}

// without returns the table without the column of a name, if it has one.
func (t *table) without(name string) *table {
	i := slices.Index(t.head, name)
	if i < 0 {
		return t
	}
	kept := &table{head: slices.Delete(slices.Clone(t.head), i, i+1)}
	for _, row := range t.rows {
		kept.add(slices.Delete(slices.Clone(row), i, i+1)...)
	}
	return kept
}
