// Package llm reads what LLM providers say on the wire: which model a request is
// for and how many tokens it may use, how many a response has used, and what the
// provider's limits are. It looks at bytes and headers, and touches no network.
//
// A call goes through it like this:
//
//	endpoint, ok := llm.Recognize(req.Method, req.URL) // not a call of a model: nothing to do
//	request, err := endpoint.Read(body)
//	tokens := estimator.Estimate(project, &request) // reserve these, and send the request
//	limits := llm.ReadLimits(endpoint.Provider, resp.StatusCode, resp.Header, nil, now)
//	meter := llm.NewMeter(endpoint.API, resp.Header) // give it what the caller reads
//	used := meter.Usage() // at the end: settle
//	estimator.Learn(project, &request, used)
package llm
