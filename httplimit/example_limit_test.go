package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"dappco.re/go/core/go-ratelimit/httplimit"
	"dappco.re/go/core/go-ratelimit/limit"
)

// show sends a request, and prints its status and the limit that decided.
func show(server *httptest.Server, path string) {
	response, err := server.Client().Get(server.URL + path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(path, response.StatusCode, response.Header.Get("RateLimit-Policy"))
}

func ExampleLimit() {
	perClient := limit.NewLimiter(httplimit.ClientPrefix(), limit.PerMinute(2), limit.PerDay(1000))

	routes := http.NewServeMux()
	routes.HandleFunc("/hello", hello)
	server := httptest.NewServer(httplimit.Limit(perClient)(routes))
	defer server.Close()

	for range 3 {
		show(server, "/hello")
	}
	// Output:
	// /hello 200 "2/min";q=2;w=60
	// /hello 200 "2/min";q=2;w=60
	// /hello 429 "2/min";q=2;w=60
}

// Each client may send three requests an hour; together they may cost 100 an hour.
func ExampleLimit_combined() {
	costs := map[string]int64{"/page": 1, "/search": 100, "/export": 1000}
	requests := limit.NewLimiter(httplimit.ClientPrefix(), limit.PerHour(3))
	work := limit.NewLimiter(func(*http.Request) struct{} { return struct{}{} }, limit.PerHour(100)).
		WithCost(func(r *http.Request) int64 { return costs[r.URL.Path] })

	server := httptest.NewServer(httplimit.Limit(limit.Combine(requests, work))(http.HandlerFunc(hello)))
	defer server.Close()

	show(server, "/page")
	show(server, "/search")
	show(server, "/export")
	// Output:
	// /page 200 "3/h";q=3;w=3600
	// /search 429 "100/h";q=100;w=3600
	// /export 400 "100/h";q=100;w=3600
}

func ExampleAnswer() {
	perPath := limit.NewLimiter(func(r *http.Request) string { return r.URL.Path }, limit.PerDay(1))
	busy := func(w http.ResponseWriter, r *http.Request, status int, reason string) {
		http.Error(w, "too busy for "+r.URL.Path, status)
	}
	h := httplimit.Limit(perPath, httplimit.Answer(busy))(http.HandlerFunc(hello))

	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 hello
	// 429 too busy for /
}

// Requests that would be denied are counted, and pass.
func ExampleObserve() {
	perPath := limit.NewLimiter(func(r *http.Request) string { return r.URL.Path }, limit.PerDay(1))
	denied := map[string]int{}
	count := func(r *http.Request, d limit.Decision) {
		if !d.Allowed {
			denied[d.Limit.String()]++
		}
	}
	h := httplimit.Limit(perPath, httplimit.Shadow(), httplimit.Observe(count))(http.HandlerFunc(hello))

	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code)
	}
	fmt.Println(denied)
	// Output:
	// 200
	// 200
	// 200
	// map[1/day:2]
}
