package books

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Dimension is what the lines of the books can be grouped by.
type Dimension string

// The dimensions.
const (
	ByProject Dimension = "project"
	ByModel   Dimension = "model"
	ByKey     Dimension = "key"
	ByHour    Dimension = "hour"
	ByDay     Dimension = "day"
)

// Dimensions are all dimensions.
var Dimensions = []Dimension{ByProject, ByModel, ByKey, ByHour, ByDay}

// Query asks what was used.
type Query struct {
	// Since and Until are Unix seconds: the lines count whose hour or day begins at Since or
	// later, and before Until. The hour that Since falls into counts as well. 0 is no bound.
	Since, Until int64

	// Project is a node of the tree: its own lines count, and those of all projects below it.
	// Empty: all lines count.
	Project string

	Key string // the id of a virtual key, if only the lines of its calls count

	OfModel func(model string) bool // reports whether the lines of a model count; nil: those of all do

	By    []Dimension // by what the lines are grouped; empty: all are added up
	Depth int         // with ByProject, to how many levels the paths of projects are cut; 0: they are not
}

// MaxRows is how many rows an answer may have.
const MaxRows = 100_000

// Validate returns what is wrong with the query and what is allowed, or nil.
func (q *Query) Validate() error {
	for i, d := range q.By {
		if !slices.Contains(Dimensions, d) {
			return fmt.Errorf("ratelimit: usage by %.40q: it can be grouped by %s", d, allDimensions())
		}
		if slices.Contains(q.By[:i], d) {
			return fmt.Errorf("ratelimit: usage by %s, twice: once is enough", d)
		}
	}
	switch {
	case q.groups(ByHour) && q.groups(ByDay):
		return fmt.Errorf("ratelimit: usage by hour and by day: it can be grouped by one of them")
	case q.Depth < 0:
		return fmt.Errorf("ratelimit: a depth of %d: it must be 1 or more, or 0 for whole paths", q.Depth)
	case q.Depth > 0 && !q.groups(ByProject):
		return fmt.Errorf("ratelimit: a depth is of paths of projects, and the usage is not grouped by project")
	case q.Until != 0 && q.Until <= q.Since:
		return fmt.Errorf("ratelimit: the time ends before it begins: until must be later than since")
	}
	return nil
}

func allDimensions() string {
	names := make([]string, len(Dimensions))
	for i, d := range Dimensions {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}

func (q *Query) groups(d Dimension) bool { return slices.Contains(q.By, d) }

// Bounds returns the first beginning of an hour or day that counts, and the first that does not
// count any more.
func (q *Query) Bounds() (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	if q.Since != 0 {
		from = floor(q.Since, Hour)
	}
	if q.Until != 0 {
		to = q.Until
	}
	return from, to
}

// Covers reports whether an hour or day that begins at a time counts.
func (q *Query) Covers(at int64) bool {
	from, to := q.Bounds()
	return from <= at && at < to
}

// Within reports whether the lines of a project count.
func (q *Query) Within(project string) bool {
	return q.Project == "" || project == q.Project || strings.HasPrefix(project, q.Project) && project[len(q.Project)] == '/'
}

// Row is one group of lines, and their sum. What the lines are not grouped by is zero.
type Row struct {
	At int64 // the beginning of the hour or day, in Unix seconds
	Owner
	Amounts
}

// Summary is the answer to a query.
type Summary struct {
	Rows  []Row // in the order of the dimensions of the query
	Total Amounts
}

// Sum adds up lines for a query.
type Sum struct {
	query Query
	rows  map[group]*Amounts
	total Amounts
}

// group is what lines of one row have in common.
type group struct {
	at int64
	Owner
}

// NewSum returns a sum without lines.
func NewSum(q Query) *Sum { return &Sum{query: q, rows: map[group]*Amounts{}} }

// Add adds a line, if the query asks for it. A line of a day that the query groups by the hour
// counts for the first hour of its day.
func (s *Sum) Add(l Line) {
	q := &s.query
	if !q.Covers(l.At) || !q.Within(l.Project) || q.Key != "" && q.Key != l.Key || q.OfModel != nil && !q.OfModel(l.Model) {
		return
	}
	s.total.Add(&l.Amounts)
	g := s.groupOf(&l)
	row := s.rows[g]
	if row == nil {
		if len(s.rows) > MaxRows {
			return // the summary is an error anyway
		}
		row = new(Amounts)
		s.rows[g] = row
	}
	row.Add(&l.Amounts)
}

func (s *Sum) groupOf(l *Line) (g group) {
	for _, d := range s.query.By {
		switch d {
		case ByProject:
			g.Project = cut(l.Project, s.query.Depth)
		case ByModel:
			g.Model = l.Model
		case ByKey:
			g.Key = l.Key
		case ByHour:
			g.at = l.At
		case ByDay:
			g.at = DayOf(l.At)
		}
	}
	return g
}

// cut returns the first levels of a path, or all of it if levels is 0.
func cut(path string, levels int) string {
	for i := range len(path) {
		if path[i] != '/' || levels == 0 {
			continue
		}
		levels--
		if levels == 0 {
			return path[:i]
		}
	}
	return path
}

// Summary returns the sums, or an error if there are too many.
func (s *Sum) Summary() (*Summary, error) {
	if len(s.rows) > MaxRows {
		return nil, fmt.Errorf("%w: more than %d: group by less, cut projects to a depth, or ask for less time", ErrTooMany, MaxRows)
	}
	all := &Summary{Rows: make([]Row, 0, len(s.rows)), Total: s.total}
	for g, amounts := range s.rows {
		all.Rows = append(all.Rows, Row{g.at, g.Owner, *amounts})
	}
	slices.SortFunc(all.Rows, s.query.compare)
	return all, nil
}

// compare orders rows by the dimensions of the query, the first one first.
func (q *Query) compare(a, b Row) int {
	for _, d := range q.By {
		order := 0
		switch d {
		case ByProject:
			order = cmp.Compare(a.Project, b.Project)
		case ByModel:
			order = cmp.Compare(a.Model, b.Model)
		case ByKey:
			order = cmp.Compare(a.Key, b.Key)
		default:
			order = cmp.Compare(a.At, b.At)
		}
		if order != 0 {
			return order
		}
	}
	return 0
}
