package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"dappco.re/go/core/go-ratelimit/httplimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// ask sends a request of a project to a server, and prints the answer.
func ask(server *httptest.Server, path, project string) {
	r, err := http.NewRequest("GET", server.URL+path, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r.Header.Set(httplimit.HeaderProjectID, project)
	response, err := server.Client().Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(project, path, response.StatusCode)
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }

func ExampleMiddleware() {
	limiter := project.New(&project.Limit{RequestsPerMinute: 2, RequestsPerDay: 100})
	defer limiter.Close()

	routes := http.NewServeMux()
	routes.HandleFunc("GET /hello", hello)
	server := httptest.NewServer(httplimit.Middleware(limiter)(routes))
	defer server.Close()

	for range 3 {
		ask(server, "/hello", "ann")
	}
	ask(server, "/hello", "bob")
	// Output:
	// ann /hello 200
	// ann /hello 200
	// ann /hello 429
	// bob /hello 200
}

func ExampleCost() {
	limiter := project.New(&project.Limit{TokensPerMinute: 1000})
	defer limiter.Close()

	estimate := func(r *http.Request) (requests, tokens int, err error) { return 1, 800, nil }
	complete := func(w http.ResponseWriter, r *http.Request) {
		// Call a model, and find that it has used 150 tokens.
		httplimit.ReservationFrom(r.Context()).Commit(100, 50)
	}
	server := httptest.NewServer(httplimit.Middleware(limiter, httplimit.Cost(estimate))(http.HandlerFunc(complete)))
	defer server.Close()

	for range 3 {
		ask(server, "/complete", "ann")
	}
	// Output:
	// ann /complete 200
	// ann /complete 200
	// ann /complete 429
}

func ExampleClientIP() {
	limiter := project.New(&project.Limit{RequestsPerMinute: 1})
	defer limiter.Close()

	server := httptest.NewServer(httplimit.Middleware(limiter, httplimit.Identify(httplimit.ClientIP()))(http.HandlerFunc(hello)))
	defer server.Close()

	ask(server, "/hello", "ann")
	ask(server, "/hello", "not ann") // from the same address
	// Output:
	// ann /hello 200
	// not ann /hello 429
}
