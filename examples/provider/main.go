// Command provider is a stand-in for the providers of models at http://127.0.0.1:9090, so that the
// gateway can be tried without a key and without costs. An argument is another address.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"

	"dappco.re/go/core/go-ratelimit/mockprovider"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	address := "127.0.0.1:9090"
	if len(args) > 0 {
		address = args[0]
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("a stand-in for OpenAI, Anthropic, Gemini and others at http://%s\n", listener.Addr())
	return http.Serve(listener, mockprovider.New(mockprovider.Config{}))
}
