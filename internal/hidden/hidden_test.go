package hidden

import (
	"fmt"
	"testing"
	"time"
)

type secret struct{}

func (secret) String() string { return "secret" }

type holder struct{}

func (holder) Internal() any { return secret{} }

func TestOfFindsWhatATypeHasItselfHoldsOrEmbeds(t *testing.T) {
	for name, c := range map[string]struct {
		x    any
		want string
	}{
		"itself":   {time.Second, "1s"},
		"holds":    {holder{}, "secret"},
		"embeds":   {struct{ holder }{}, "secret"},
		"pointers": {&struct{ *holder }{&holder{}}, "secret"},
		"neither":  {7, "<nil>"},
		"nil":      {nil, "<nil>"},
	} {
		if got := fmt.Sprint(Of[fmt.Stringer](c.x)); got != c.want {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
	if found := Of[error](holder{}); found != nil {
		t.Errorf("a holder has the error %v", found)
	}
}
