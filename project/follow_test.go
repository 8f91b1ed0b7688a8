package project_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// keeping is a store that keeps settings, can be asked for them so many times, and
// knows who watches them.
type keeping struct {
	*store.Memory
	mu       sync.Mutex
	answers  int
	values   map[string]string
	watchers int
}

var errAsked = errors.New("asked too often")

func (k *keeping) Settings(context.Context) (map[string]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.answers--; k.answers < 0 {
		return nil, errAsked
	}
	return k.values, nil
}

func (k *keeping) PutSettings(context.Context, map[string]string, bool) (map[string]string, error) {
	return nil, errAsked
}

func (k *keeping) WatchSettings(func()) (stop func()) {
	k.watch(1)
	return func() { k.watch(-1) }
}

func (k *keeping) watch(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watchers += n
}

// A limiter that cannot read its limits is not made, and leaves nobody behind who
// follows them.
func TestLimitsCannotBeRead(t *testing.T) {
	k := &keeping{Memory: store.NewMemory()}
	if l, err := project.NewWithConfig(project.Config{Store: k}); l != nil || !errors.Is(err, errAsked) || k.watchers != 0 {
		t.Errorf("a limiter: %t, %v, %d watch", l != nil, err, k.watchers)
	}
	k = &keeping{Memory: store.NewMemory(), answers: 1, values: map[string]string{"project/p": `{"requests_per_hour":3}`}}
	l := newLimiter(t, project.Config{Store: k, Limits: map[string]project.Limit{"p": {RequestsPerMinute: 1}}})
	if l.Limit("p") != (project.Limit{RequestsPerHour: 3}) {
		t.Errorf("what the store holds takes precedence: %+v", l.Limit("p"))
	}
	if err := l.SetLimit("p", project.Limit{}); !errors.Is(err, errAsked) || l.Limit("p") != (project.Limit{RequestsPerHour: 3}) {
		t.Errorf("what cannot be kept is not set: %v, %+v", err, l.Limit("p"))
	}
	if err := l.Close(); err != nil || k.watchers != 0 {
		t.Errorf("%v, %d watch", err, k.watchers)
	}
}
