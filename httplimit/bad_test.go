package httplimit

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/project"
)

// Every invalid request gets a clear answer, and is charged nothing.
func TestBadInput(t *testing.T) {
	const header = "X-Project-ID: "
	for _, c := range []struct {
		name, headers string
		status        int
		says          string
	}{
		{"none", "", 400, "X-Project-ID is missing"},
		{"empty", header + "\r\n", 400, "128"},
		{"blank", header + "   \t \r\n", 400, "128"},
		{"two", header + "p\r\n" + header + "q\r\n", 400, "more than once"},
		{"two, in other cases", header + "p\r\nx-project-id: q\r\n", 400, "more than once"},
		{"two, one empty", header + "p\r\n" + header + "\r\n", 400, "more than once"},
		{"the same twice", header + "p\r\n" + header + "p\r\n", 200, "fine"},
		{"a list", header + "p, q\r\n", 400, "ASCII"},
		{"a space", header + "p q\r\n", 400, "ASCII"},
		{"longest", header + strings.Repeat("p", 128) + "\r\n", 200, "fine"},
		{"too long", header + strings.Repeat("p", 129) + "\r\n", 400, "128"},
		{"a megabyte", header + strings.Repeat("p", 1<<20) + "\r\n", 400, "128"},
		{"not UTF-8", header + "\xff\xfe\r\n", 400, "ASCII"},
		{"not ASCII", header + "pröject\r\n", 400, "ASCII"},
		{"a control character", header + "p\x01\r\n", 400, "Bad Request"}, // refused by net/http
		{"a zero", header + "p\x00\r\n", 400, "Bad Request"},
		{"a lone return", header + "p\rq\r\n", 400, "Bad Request"},
		{"a folded line", header + "p\r\n q\r\n", 400, ""},
		{"DEL", header + "p\x7f\r\n", 400, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			heard, next := &recorder{}, &fine{}
			limiter := configured(t, project.Config{Default: &project.Limit{RequestsPerDay: 10}, Observer: heard})
			server := httptest.NewServer(Middleware(limiter)(next))
			defer server.Close()
			answer := sendRaw(t, server.Listener.Addr(), "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+c.headers+"\r\n")
			response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != c.status || !strings.Contains(string(body), c.says) || len(body) > 1000 || !utf8.Valid(body) {
				t.Errorf("%d: %.1000q", response.StatusCode, body)
			}
			charged := heard.count(event.Admitted, false)
			if want := c.status == 200; (charged == 1) != want || (next.calls.Load() == 1) != want {
				t.Errorf("%d charged, %d calls", charged, next.calls.Load())
			}
		})
	}
}
