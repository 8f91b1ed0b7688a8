package dialect_test

import (
	"fmt"
	"io"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// Totals that come beside pieces of several answers are exact only once all answers have ended. A
// client that left after the shortest answer once paid next to nothing for the others.
func TestMeterOfSeveralAnswers(t *testing.T) {
	chunk := func(ended string, output int) string {
		return fmt.Sprintf(`data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0%s}],`+
			`"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":%d,"totalTokenCount":%d}}`+"\n\n", ended, output, 5+output)
	}
	const stop = `,"finishReason":"STOP"`
	for _, c := range []struct {
		asked, ended int
		exact        bool
	}{{0, 0, false}, {0, 1, true}, {1, 1, true}, {3, 1, false}, {3, 2, false}, {3, 3, true}} {
		m := dialect.NewMeter(dialect.Generate, nil)
		m.Expect(c.asked)
		io.WriteString(m, chunk("", 1))
		for i := range c.ended {
			io.WriteString(m, chunk(stop, 2+i))
		}
		if u := m.Usage(); u.Exact != c.exact || u.Input != 5 {
			t.Errorf("%d of %d answers have ended: %+v", c.ended, c.asked, u)
		}
	}
}
