package console

import (
	"slices"
	"strings"
)

// Column is a column of a table.
type Column struct {
	name    string
	right   bool // aligned at its right side
	least   int  // the fewest columns of the terminal that a cell is shortened to; 0: it is never shortened
	start   bool // the start of a cell is shortened, and not its end
	leaving int  // the turn in which the column leaves a table that has no room; 0: never
	below   bool // cells may stand below their rows
	moved   bool // they do
	kept    bool // the column stays even if it has nothing in it
}

// Text is a column of texts.
func Text(name string) Column { return Column{name: name} }

// Number is a column that is aligned at its right side.
func Number(name string) Column { return Column{name: name, right: true} }

// Shortened returns the column with cells that may be shortened, to least columns of the terminal at the
// fewest.
func (c Column) Shortened(least int) Column {
	c.least = least
	return c
}

// ShortenedAtStart is Shortened for names whose ends matter more.
func (c Column) ShortenedAtStart(least int) Column {
	c.least, c.start = least, true
	return c
}

// Leaves returns the column as one that is left out if there is no room, in the given turn.
func (c Column) Leaves(turn int) Column {
	c.leaving = turn
	return c
}

// Kept returns the column as one that stays even if it has nothing in it, so that a table that is drawn
// again and again does not jump.
func (c Column) Kept() Column {
	c.kept = true
	return c
}

// Below returns the column as one whose cells are sentences: if there is no room beside the
// others, they stand below their rows, in lines of their own.
func (c Column) Below() Column {
	c.below = true
	return c
}

// Table is rows of cells in columns.
type Table struct {
	columns []Column
	rows    [][]string
	styles  []func(string) string
	bare    bool // has no head
}

// NewTable returns a table without rows.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// NewList returns a table without rows and without a head.
func NewList(columns int) *Table { return &Table{columns: make([]Column, columns), bare: true} }

// Add adds a row. Its cells are made printable.
func (t *Table) Add(cells ...string) { t.AddStyled(nil, cells...) }

// AddStyled adds a row in a style, such as [Bad]; nil is none.
func (t *Table) AddStyled(style func(string) string, cells ...string) {
	row := make([]string, len(t.columns))
	for i := range row {
		row[i] = Printable(cells[i])
	}
	t.rows, t.styles = append(t.rows, row), append(t.styles, style)
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Lines returns the table in lines of at most width columns of the terminal, as far as that is possible; 0
// is any width. Columns without anything in them are left out. What matters most should be first: a
// table without room leaves out columns, shortens names, and puts sentences below their rows.
func (t *Table) Lines(width int) []string {
	kept := t.withoutEmpty()
	if width <= 0 || kept.width() <= width {
		return kept.render(width)
	}
	kept.moveBelow()
	for turn := 1; !kept.fits(width) && kept.hasLeaving(); turn++ {
		kept = kept.only(func(i int) bool { return kept.columns[i].leaving != turn })
	}
	if !kept.fits(width) {
		for i, c := range kept.columns {
			kept.columns[i].least = min(c.least, tightest)
		}
	}
	kept.shorten(width)
	return kept.render(width)
}

// fits reports whether the table has the width once its cells are shortened.
func (t *Table) fits(width int) bool {
	all := t.only(func(int) bool { return true })
	all.shorten(width)
	return all.width() <= width
}

// tightest is what names are shortened to at last.
const tightest = 4

// indent is how far what stands below a row is moved in.
const indent = "    "

// render returns the lines, cut at a width if that is not 0.
func (t *Table) render(width int) []string {
	widths := t.widths()
	var lines []string
	if !t.bare {
		head := make([]string, len(t.columns))
		for i, c := range t.columns {
			head[i] = c.name
		}
		lines = append(lines, Head(cutEnd(t.line(head, widths), width)))
	}
	for i, row := range t.rows {
		line := cutEnd(t.line(row, widths), width)
		if style := t.styles[i]; style != nil {
			line = style(line)
		}
		lines = append(lines, line)
		for j, c := range t.columns {
			if c.moved && row[j] != "" && row[j] != "-" {
				text := row[j]
				if c.name != "" {
					text = c.name + ": " + text
				}
				lines = append(lines, Wrap(text, width, indent)...)
			}
		}
	}
	return lines
}

func (t *Table) line(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		if t.columns[i].moved {
			continue
		}
		space := strings.Repeat(" ", max(widths[i]-Width(cell), 0))
		if t.columns[i].right {
			b.WriteString(space + cell)
		} else {
			b.WriteString(cell + space)
		}
		b.WriteString("  ")
	}
	return strings.TrimRight(b.String(), " ")
}

// moveBelow moves the sentences below their rows.
func (t *Table) moveBelow() {
	for i, c := range t.columns {
		t.columns[i].moved = c.below
	}
}

func (t *Table) hasLeaving() bool {
	return slices.ContainsFunc(t.columns, func(c Column) bool { return c.leaving > 0 })
}

// widths returns the width of every column.
func (t *Table) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		if c.moved {
			continue
		}
		if !t.bare {
			widths[i] = Width(c.name)
		}
		for _, row := range t.rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
	}
	return widths
}

// width returns the width of the widest line.
func (t *Table) width() int {
	all, columns := 0, 0
	for i, w := range t.widths() {
		if !t.columns[i].moved {
			all += w
			columns++
		}
	}
	return all + 2*(columns-1)
}

// shorten shortens the widest of the cells that may be, until the table has the width.
func (t *Table) shorten(width int) {
	for over := t.width() - width; over > 0; over = t.width() - width {
		widths, widest := t.widths(), -1
		for i, c := range t.columns {
			if c.least > 0 && !c.moved && widths[i] > max(c.least, Width(c.name)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		cut := cutEnd
		if t.columns[widest].start {
			cut = cutStart
		}
		for _, row := range t.rows {
			row[widest] = cut(row[widest], widths[widest]-1)
		}
	}
}

// withoutEmpty returns a copy without the columns that have nothing in any row. A table without rows
// keeps them all.
func (t *Table) withoutEmpty() *Table {
	return t.only(func(i int) bool {
		return len(t.rows) == 0 || t.columns[i].kept || slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != "" && row[i] != "-" })
	})
}

// only returns a copy that has the columns of which keep is true.
func (t *Table) only(keep func(i int) bool) *Table {
	kept := &Table{styles: t.styles, bare: t.bare, rows: make([][]string, len(t.rows))}
	for i, c := range t.columns {
		if !keep(i) {
			continue
		}
		kept.columns = append(kept.columns, c)
		for j, row := range t.rows {
			kept.rows[j] = append(kept.rows[j], row[i])
		}
	}
	return kept
}
