package wire_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"dappco.re/go/core/go-ratelimit/internal/wire"
)

func Example() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s? Yes.", question)
	}))
	defer provider.Close()
	transport := &wire.Transport{}
	defer transport.CloseIdleConnections()

	req, err := http.NewRequest(http.MethodPost, provider.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	text := wire.Pieces{[]byte("Ready")}
	req.Body = &text
	response, err := transport.RoundTrip(req)
	if err != nil {
		fmt.Println(err) // it says whether anything was sent: see wire.Error
		return
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	fmt.Println(response.Status, string(answer), err)
	// Output: 200 OK Ready? Yes. <nil>
}
