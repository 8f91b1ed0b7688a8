package mockprovider

import (
	"encoding/json"
	"net/http"
	"strings"
)

// countsTokens answers a request to count the tokens of a prompt, if it is one. It uses no tokens.
func (e *exchange) countsTokens() bool {
	for end, field := range counting {
		if !strings.HasSuffix(e.r.URL.Path, end) {
			continue
		}
		var f fields
		if err := json.NewDecoder(http.MaxBytesReader(e.w, e.r.Body, maxBody)).Decode(&f); err != nil {
			e.fail(failure{status: http.StatusBadRequest, message: err.Error()}, limitStates{})
			return true
		}
		n := f.count("messages", "system", "tools", "input", "instructions", "contents", "systemInstruction")
		e.json(http.StatusOK, encode(object{field: n}))
		return true
	}
	return false
}

// fetches answers a request for something that an earlier one has begun, if it is one.
func (e *exchange) fetches() bool {
	for folder, object := range fetched {
		if _, name, ok := strings.Cut(e.r.URL.Path, folder); ok && e.r.Method == http.MethodGet && !strings.Contains(name, "/") {
			e.json(http.StatusOK, encode(object(name)))
			return true
		}
	}
	return false
}

// listsModels answers a request for the list of models, if it is one.
func (e *exchange) listsModels() bool {
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
