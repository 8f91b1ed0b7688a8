//go:build !nodashboard

package dashboard_test

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/dashboard"
)

// The admin API serves the page. Here is the page alone.
func Example() {
	answer := httptest.NewRecorder()
	dashboard.New("v1.2.3").ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
	fmt.Println(answer.Code, strings.Contains(answer.Body.String(), "ratelimit v1.2.3"))
	// Output: 200 true
}
