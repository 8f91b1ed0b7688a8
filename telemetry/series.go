package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// defaultModels is how many models get series of their own.
const defaultModels = 100

// series keeps a T for each pair of a model and a project that was seen. Their
// number is bounded, whatever clients send. Finding one that is there allocates
// nothing and locks nothing.
type series[T any] struct {
	create func(model, project string) *T

	none, others *row[T]    // for calls without a model, and for all models that have no row
	most         int        // rows of models
	mu           sync.Mutex // of who adds something

	// They are replaced, never changed.
	listing atomic.Pointer[listing]
	models  atomic.Pointer[map[string]*row[T]]
}

// listing is the projects that are told apart.
type listing struct {
	names  []string       // the first is none, and the second all that are not listed
	places map[string]int // of those that are listed
}

// row is what is kept of one model: a cell for each project, as soon as it is seen.
type row[T any] struct {
	model string
	cells atomic.Pointer[[]*atomic.Pointer[T]] // is replaced, never changed
}

// newSeries returns series for so many models (0 for the default), and for the
// projects that are listed.
func newSeries[T any](most int, projects []string, create func(model, project string) *T) (*series[T], error) {
	if most < 0 {
		return nil, fmt.Errorf("ratelimit: Models of %d: it must be at least 1, or 0 for %d", most, defaultModels)
	}
	if most == 0 {
		most = defaultModels
	}
	s := &series[T]{create: create, none: newRow[T](""), others: newRow[T](other), most: most}
	s.listing.Store(&listing{[]string{"", other}, map[string]int{}})
	s.models.Store(&map[string]*row[T]{})
	return s, s.list(projects)
}

func newRow[T any](model string) *row[T] {
	r := &row[T]{model: model}
	r.cells.Store(new([]*atomic.Pointer[T]))
	return r
}

// list tells projects apart from now on, beside those that are already.
func (s *series[T]) list(projects []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := *s.listing.Load()
	now.names, now.places = slices.Clone(now.names), maps.Clone(now.places)
	for _, id := range projects {
		if id == "" || id == other || !utf8.ValidString(id) {
			return fmt.Errorf("ratelimit: project %.80q: an id in Projects must be UTF-8, and neither empty nor %q, which stands for all others", id, other)
		}
		if _, listed := now.places[id]; !listed {
			now.places[id] = len(now.names)
			now.names = append(now.names, id)
		}
	}
	s.listing.Store(&now)
	return nil
}

// of returns what is kept for the model and the project of an event.
func (s *series[T]) of(e *ratelimit.Event) *T {
	r, listing := s.row(e), s.listing.Load()
	place := listing.place(e.Project)
	cell := s.cell(r, place)
	if t := cell.Load(); t != nil {
		return t
	}
	cell.CompareAndSwap(nil, s.create(r.model, listing.names[place]))
	return cell.Load()
}

func (l *listing) place(project string) int {
	if project == "" {
		return 0
	}
	if place, ok := l.places[project]; ok {
		return place
	}
	return 1
}

// cell returns the one at a place of a row, which gets longer if it must.
func (s *series[T]) cell(r *row[T], place int) *atomic.Pointer[T] {
	if cells := *r.cells.Load(); place < len(cells) {
		return cells[place]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cells := slices.Clone(*r.cells.Load())
	for len(cells) < len(s.listing.Load().names) {
		cells = append(cells, new(atomic.Pointer[T]))
	}
	r.cells.Store(&cells)
	return cells[place]
}

func (s *series[T]) row(e *ratelimit.Event) *row[T] {
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
	if len(models) >= s.most || e.Model == other || !utf8.ValidString(e.Model) {
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
	if len(models) >= s.most {
		return s.others
	}
	model = strings.Clone(model) // it may be a part of something large
	r := newRow[T](model)
	models = maps.Clone(models)
	models[model] = r
	s.models.Store(&models)
	return r
}

// lazy is a T that is made when it is needed first.
type lazy[T any] struct{ made atomic.Pointer[T] }

// get returns the T. Calls at the same time may each make one, so these must be
// the same.
func (l *lazy[T]) get(create func() T) T {
	if t := l.made.Load(); t != nil {
		return *t
	}
	t := create()
	l.made.Store(&t)
	return t
}
