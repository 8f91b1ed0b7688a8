package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"

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

func ExampleMiddleware_chi() {
	limiter := project.New(&project.Limit{RequestsPerMinute: 1})
	defer limiter.Close()

	routes := chi.NewRouter()
	routes.Get("/healthz", hello)
	routes.Group(func(api chi.Router) {
		api.Use(httplimit.Middleware(limiter))
		api.Get("/hello", hello)
	})
	server := httptest.NewServer(routes)
	defer server.Close()

	ask(server, "/hello", "ann")
	ask(server, "/hello", "ann")
	ask(server, "/healthz", "ann")
	// Output:
	// ann /hello 200
	// ann /hello 429
	// ann /healthz 200
}

func ExampleMiddleware_gorilla() {
	limiter := project.New(&project.Limit{RequestsPerMinute: 1})
	defer limiter.Close()

	routes := mux.NewRouter()
	routes.Use(httplimit.Middleware(limiter,
		httplimit.Skip(func(r *http.Request) bool { return r.URL.Path == "/healthz" })))
	routes.HandleFunc("/healthz", hello)
	routes.HandleFunc("/hello", hello)
	server := httptest.NewServer(routes)
	defer server.Close()

	ask(server, "/hello", "ann")
	ask(server, "/hello", "ann")
	ask(server, "/healthz", "ann")
	// Output:
	// ann /hello 200
	// ann /hello 429
	// ann /healthz 200
}
