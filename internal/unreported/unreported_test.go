package unreported

import (
	"errors"
	"testing"
)

func TestError(t *testing.T) {
	var e Error
	first, second := errors.New("first"), errors.New("second")
	for i, step := range []struct {
		keep []error
		want error
	}{
		{nil, nil},
		{[]error{nil}, nil},
		{[]error{first, second}, first},
		{nil, nil},
		{[]error{nil, second, first}, second},
	} {
		for _, err := range step.keep {
			e.Keep(err)
		}
		if got := e.Take(); got != step.want {
			t.Errorf("step %d: got %v, want %v", i, got, step.want)
		}
	}
}
