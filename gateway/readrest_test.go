package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A client that leaves before the end of the results of a batch, or of a response, has settled them all the same.
func TestTheRestIsReadWhenTheClientLeaves(t *testing.T) {
	const response = `{"id":"resp_1","object":"response",    "status":"completed","output":[],"usage":{"input_tokens":10,"output_tokens":1}}`
	for _, c := range []struct{ name, submit, body, fetch, answer string }{
		{"a batch", "/openai/v1/batches", submission("in"), "/openai/v1/files/out/content", strings.Repeat("\n", 40) + goodResult},
		{"a response", "/openai/v1/responses", inBackground, "/openai/v1/responses/resp_1", response},
	} {
		t.Run(c.name, func(t *testing.T) {
			left := make(chan struct{})
			r := newRigBefore(t, batchRig, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/in/content"):
					io.WriteString(w, chatLines(1, 1000))
				case strings.HasSuffix(r.URL.Path, "/out/content"), strings.HasSuffix(r.URL.Path, "/resp_1"):
					io.WriteString(w, c.answer[:36])
					w.(http.Flusher).Flush()
					<-left
					io.WriteString(w, strings.Repeat(" ", 16<<20)) // more than connections hold, so that the gateway notices
					io.WriteString(w, c.answer[36:])
				case r.Method == "GET":
					io.WriteString(w, `{"data":[{"id":"b","status":"completed","output_file_id":"out"}]}`)
				case strings.HasSuffix(r.URL.Path, "/batches"):
					io.WriteString(w, submitted)
				default:
					io.WriteString(w, `{"id":"resp_1","status":"queued","usage":null}`)
				}
			}))
			if a := r.post(t, c.submit, c.body, "X-Project-ID", "acme"); a.status != 200 || r.noBatches(t) {
				t.Fatalf("%d %s", a.status, a.body)
			}
			ctx, leave := context.WithCancel(t.Context())
			request, _ := http.NewRequestWithContext(ctx, "GET", r.url+c.fetch, nil)
			request.Header.Set("X-Project-ID", "acme")
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(answer.Body, make([]byte, 36)); err != nil {
				t.Fatal(err)
			}
			leave()
			answer.Body.Close()
			close(left)
			if r.settled(t); !r.noBatches(t) {
				t.Error("it is not settled")
			}
		})
	}
}
