package wire_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"dappco.re/go/core/go-ratelimit/internal/wire"
)

func ExampleServer() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := &wire.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
	})}
	go server.Serve(listener)
	defer server.Shutdown(context.Background())

	response, err := http.Get("http://" + listener.Addr().String() + "/v1/models")
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	fmt.Println(response.Status, string(text), err)
	// Output: 200 OK GET /v1/models <nil>
}
