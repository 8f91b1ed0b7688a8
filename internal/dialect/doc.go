// Package dialect reads the requests and responses of LLM providers: which model a request names and how many tokens it may
// use, how many tokens a response has used, and what it says about the provider's limits. It reads bytes and headers, and
// uses no network. Each provider has a file.
//
// A call goes through it like this:
//
//	endpoint, ok := dialect.Recognize(req.Method, req.URL) // not ok: the request is no call of a model
//	request, err := endpoint.Read(body)
//	tokens := estimator.Estimate(project, &request) // reserve these, and send the request
//	limits := dialect.ReadLimits(endpoint.Provider, resp.StatusCode, resp.Header, nil, now)
//	meter := dialect.NewMeter(endpoint.API, resp.Header) // write to it what the caller reads
//	used := meter.Usage() // when the body ends: settle the call
//	estimator.Learn(project, &request, used)
package dialect
