package dialect_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

func ExampleMeter() {
	body := strings.NewReader(`data: {"choices":[{"delta":{"content":"Hello"}}],"usage":null}

data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":2,"total_tokens":13}}

data: [DONE]

`)
	m := dialect.NewMeter(dialect.Chat, http.Header{"Content-Type": {"text/event-stream"}})
	seen, _ := io.ReadAll(m.Hide(body)) // or write to the meter what the caller reads
	fmt.Printf("%s", seen)
	used := m.Usage()
	fmt.Println(used.Input, used.Output, used.Exact)
	// Output:
	// data: {"choices":[{"delta":{"content":"Hello"}}],"usage":null}
	//
	// data: [DONE]
	//
	// 11 2 true
}
