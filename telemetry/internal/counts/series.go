package counts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/event"
)

// defaultModels is how many models get series of their own.
const defaultModels = 100

// series keeps a T for each pair of a model and a project that has been seen. The number of pairs
// is bounded, whatever clients send. Finding an existing one allocates nothing and takes no lock.
type series[T any] struct {
	create func(model, project string) *T

	none, others *row[T] // the rows of calls without a model, and of models without a row of their own
	maxModels    int
	mu           sync.Mutex // guards additions

	// listing and models are replaced, never changed.
	listing atomic.Pointer[Listing]
	models  atomic.Pointer[map[string]*row[T]]
}

// Listing is the projects that have series of their own.
type Listing struct {
	names   []string       // the first is "", for calls without a project; the second stands for all projects that are not listed
	indexes map[string]int // the indexes of the listed projects in names
}

// row has the cells of one model: one for each project, filled when the project is first seen.
type row[T any] struct {
	model string
	cells atomic.Pointer[[]*atomic.Pointer[T]] // replaced, never changed
}

// newSeries returns series for at most maxModels models, 0 for the default, and for the listed
// projects.
func newSeries[T any](maxModels int, projects []string, create func(model, project string) *T) (*series[T], error) {
	if maxModels < 0 {
		return nil, fmt.Errorf("ratelimit: Models of %d: it must be at least 1, or 0 for %d", maxModels, defaultModels)
	}
	if maxModels == 0 {
		maxModels = defaultModels
	}
	s := &series[T]{create: create, none: newRow[T](""), others: newRow[T](other), maxModels: maxModels}
	s.listing.Store(&Listing{[]string{"", other}, map[string]int{}})
	s.models.Store(&map[string]*row[T]{})
	return s, s.list(projects)
}

func newRow[T any](model string) *row[T] {
	r := &row[T]{model: model}
	r.cells.Store(new([]*atomic.Pointer[T]))
	return r
}

// list gives more projects series of their own from now on.
func (s *series[T]) list(projects []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := *s.listing.Load()
	now.names, now.indexes = slices.Clone(now.names), maps.Clone(now.indexes)
	for _, id := range projects {
		if id == "" || id == other || !utf8.ValidString(id) {
			return fmt.Errorf("ratelimit: project %.80q: an id in Projects must be UTF-8, and neither empty nor %q, which stands for all others", id, other)
		}
		if _, listed := now.indexes[id]; !listed {
			now.indexes[id] = len(now.names)
			now.names = append(now.names, id)
		}
	}
	s.listing.Store(&now)
	return nil
}

// of returns the T for the model and the project of an event.
func (s *series[T]) of(e *event.Event) *T {
	r, listing := s.row(e), s.listing.Load()
	index := listing.index(e.Project)
	cell := s.cell(r, index)
	if t := cell.Load(); t != nil {
		return t
	}
	cell.CompareAndSwap(nil, s.create(r.model, listing.names[index]))
	return cell.Load()
}

// Projects returns the projects that have series of their own.
func (l *Listing) Projects() []string { return l.names[2:] }

// index returns the index of a project, or of the nearest one above it that is listed: acme/search
// for its user acme/search/alice.
func (l *Listing) index(project string) int {
	if project == "" {
		return 0
	}
	for project != "" {
		if index, ok := l.indexes[project]; ok {
			return index
		}
		project = project[:max(strings.LastIndexByte(project, '/'), 0)]
	}
	return 1
}

// cell returns the cell of a row at an index. It extends the row if necessary.
func (s *series[T]) cell(r *row[T], index int) *atomic.Pointer[T] {
	if cells := *r.cells.Load(); index < len(cells) {
		return cells[index]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cells := slices.Clone(*r.cells.Load())
	for len(cells) < len(s.listing.Load().names) {
		cells = append(cells, new(atomic.Pointer[T]))
	}
	r.cells.Store(&cells)
	return cells[index]
}

func (s *series[T]) row(e *event.Event) *row[T] {
	switch {
	case e.Model == "":
		return s.none
	case !e.Limited:
		return s.others
	}
	models := *s.models.Load()
	if r := models[e.Model]; r != nil {
		return r
	}
	if len(models) >= s.maxModels || e.Model == other || !utf8.ValidString(e.Model) {
		return s.others
	}
	return s.addRow(e.Model)
}

func (s *series[T]) addRow(model string) *row[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	models := *s.models.Load()
	if r := models[model]; r != nil {
		return r
	}
	if len(models) >= s.maxModels {
		return s.others
	}
	model = strings.Clone(model) // the name may share the memory of a large body
	r := newRow[T](model)
	models = maps.Clone(models)
	models[model] = r
	s.models.Store(&models)
	return r
}

// lazy is a T that is made when it is first needed.
type lazy[T any] struct{ value atomic.Pointer[T] }

// get returns the T. Concurrent calls may each make one, so all of them must be equal.
func (l *lazy[T]) get(create func() T) T {
	if t := l.value.Load(); t != nil {
		return *t
	}
	t := create()
	l.value.Store(&t)
	return t
}
