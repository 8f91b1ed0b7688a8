package httplimit

import (
	"errors"
	"net/http"

	"dappco.re/go/core/go-ratelimit/internal/admit"
)

// HeaderProjectID is the header that names a request's project.
const HeaderProjectID = "X-Project-ID"

// canonicalProjectID is HeaderProjectID as package net/http spells it.
const canonicalProjectID = "X-Project-Id"

var (
	errNoProject   = errors.New("ratelimit: the header " + HeaderProjectID + " is missing: it names the project of a request")
	errTwoProjects = errors.New("ratelimit: the header " + HeaderProjectID + " is there more than once, with different values: a request has one project")
)

// fromHeader returns the project in a request's header.
func fromHeader(r *http.Request) (string, error) {
	return admit.Single(r.Header[canonicalProjectID], errNoProject, errTwoProjects)
}
