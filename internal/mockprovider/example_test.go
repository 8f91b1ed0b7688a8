package mockprovider_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

func Example() {
	server := mockprovider.New(mockprovider.Config{})
	transport, stop := server.InMemory()
	defer stop()

	req, _ := http.NewRequest("POST", "https://api.openai.com/v1/completions", strings.NewReader(`{"model":"gpt-4o","prompt":"Tell me a story","stream":true}`))
	req.Header.Set("X-Mock", "output=3")
	response, err := transport.RoundTrip(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	fmt.Println(strings.Count(string(body), "data: "), "events")
	fmt.Printf("%+v\n", server.Totals()["gpt-4o"])
	// Output:
	// 5 events
	// {Requests:1 Refused:0 Input:5 Cached:0 CacheWrite:0 Output:3 Reasoning:0 Units:[0 0 0 0 0 0 0 0 0 0 0 0]}
}
