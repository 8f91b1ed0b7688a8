package telemetry

import (
	"fmt"
	"maps"
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

	projects []string       // the first is none, and the second all that are not listed
	places   map[string]int // of those that are listed

	none, others *row[T] // for calls without a model, and for all models that have no row
	most         int     // rows of models
	mu           sync.Mutex
	models       atomic.Pointer[map[string]*row[T]] // is replaced, never changed
}

// row is what is kept of one model: a T for each project, nil before it was seen.
type row[T any] struct {
	model string
	cells []atomic.Pointer[T]
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
	s := &series[T]{create: create, projects: []string{"", other}, places: map[string]int{}, most: most}
	for _, id := range projects {
		if id == "" || id == other || !utf8.ValidString(id) {
			return nil, fmt.Errorf("ratelimit: project %.80q: an id in Projects must be UTF-8, and neither empty nor %q, which stands for all others", id, other)
		}
		if _, twice := s.places[id]; twice {
			continue
		}
		s.places[id] = len(s.projects)
		s.projects = append(s.projects, id)
	}
	s.none, s.others = s.newRow(""), s.newRow(other)
	s.models.Store(&map[string]*row[T]{})
	return s, nil
}

func (s *series[T]) newRow(model string) *row[T] {
	return &row[T]{model, make([]atomic.Pointer[T], len(s.projects))}
}

// of returns what is kept for the model and the project of an event.
func (s *series[T]) of(e *ratelimit.Event) *T {
	r, place := s.row(e), s.place(e.Project)
	cell := &r.cells[place]
	if t := cell.Load(); t != nil {
		return t
	}
	cell.CompareAndSwap(nil, s.create(r.model, s.projects[place]))
	return cell.Load()
}

func (s *series[T]) place(project string) int {
	if project == "" {
		return 0
	}
	if place, ok := s.places[project]; ok {
		return place
	}
	return 1
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
	r := s.newRow(model)
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
