package mockprovider

import (
	"encoding/json"
	"net/http"
	"strings"
)

// counting are the paths at which prompts are counted, and where the number stands.
var counting = []struct{ end, field string }{
	{"/responses/input_tokens", "input_tokens"},
	{"/messages/count_tokens", "input_tokens"},
	{":countTokens", "totalTokens"},
}

// tokensOnly answers a request that counts a prompt, if it is one. It uses none.
func (e *exchange) tokensOnly() bool {
	for _, c := range counting {
		if !strings.HasSuffix(e.r.URL.Path, c.end) {
			continue
		}
		var f fields
		if err := json.NewDecoder(http.MaxBytesReader(e.w, e.r.Body, mostBody)).Decode(&f); err != nil {
			e.fail(failure{status: http.StatusBadRequest, message: err.Error()}, standings{})
			return true
		}
		n := f.count("messages", "system", "tools", "input", "instructions", "contents", "systemInstruction")
		e.json(http.StatusOK, encode(object{c.field: n}))
		return true
	}
	return false
}

// modelsOnly answers a request for the list of models, if it is one.
func (e *exchange) modelsOnly() bool {
	if e.r.Method != http.MethodGet || !strings.HasSuffix(e.r.URL.Path, "/models") {
		return false
	}
	list := []object{}
	for name := range e.server.Totals() {
		list = append(list, object{"id": name, "object": "model", "owned_by": "mock"})
	}
	e.json(http.StatusOK, encode(object{"object": "list", "data": list}))
	return true
}
