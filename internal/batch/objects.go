package batch

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// Object is what a provider says of a batch.
type Object struct {
	ID         string
	Status     string // OpenAI's and Gemini's
	OutputFile string // the file with the results of OpenAI's or Gemini's; empty: there is none yet, or never
	Inline     []InlineResult
}

// InlineResult is the result of one call, where a batch of Gemini's has its calls in its body.
type InlineResult struct {
	Response json.RawMessage `json:"response"` // of generateContent
	Error    json.RawMessage `json:"error"`    // in place of it, if the call has failed
}

// Read returns what the call has used.
func (r *InlineResult) Read() (Result, error) {
	switch {
	case len(r.Response) > 0:
		return metered(dialect.Generate, r.Response)
	case len(r.Error) > 0:
		return Result{Free: true}, nil
	}
	return Result{}, errResult
}

// Ended reports whether nothing more happens to a batch of OpenAI's or of Gemini's.
func (o *Object) Ended() bool {
	status := strings.ToLower(strings.TrimPrefix(o.Status, "BATCH_STATE_"))
	return slices.Contains([]string{"completed", "failed", "expired", "cancelled", "succeeded"}, status)
}

// Succeeded reports whether a batch of Gemini's has results of its calls.
func (o *Object) Succeeded() bool { return o.Status == "BATCH_STATE_SUCCEEDED" }

// operation is a batch of Gemini's in JSON. Which of the two has the output depends on who has asked.
type operation struct {
	Name     string `json:"name"`
	Metadata struct {
		State  string `json:"state"`
		Output output `json:"output"`
	} `json:"metadata"`
	Response output `json:"response"`
}

type output struct {
	File    string `json:"responsesFile"`
	Inlined struct {
		Responses []InlineResult `json:"inlinedResponses"`
	} `json:"inlinedResponses"`
}

// ReadOperation reads an answer that has a batch of Gemini's. It returns none for another one.
func ReadOperation(text []byte) []Object {
	var o operation
	if json.Unmarshal(text, &o) != nil || !strings.HasPrefix(o.Name, "batches/") {
		return nil
	}
	list := o.Response.Inlined.Responses
	if list == nil {
		list = o.Metadata.Output.Inlined.Responses
	}
	file := strings.TrimPrefix(cmp.Or(o.Response.File, o.Metadata.Output.File), "files/")
	return []Object{{ID: strings.TrimPrefix(o.Name, "batches/"), Status: o.Metadata.State, Inline: list, OutputFile: file}}
}

// object is an [Object] in JSON.
type object struct {
	ID         string  `json:"id"`
	Status     string  `json:"status"`
	OutputFile *string `json:"output_file_id"`
}

// ReadObjects reads an answer that has a batch or a list of batches. It returns none for another one.
func ReadObjects(text []byte) (found []Object) {
	var said struct {
		object
		Data []object `json:"data"`
	}
	if json.Unmarshal(text, &said) != nil {
		return nil
	}
	all := said.Data
	if said.ID != "" {
		all = []object{said.object}
	}
	for _, o := range all {
		each := Object{ID: o.ID, Status: o.Status}
		if o.OutputFile != nil {
			each.OutputFile = *o.OutputFile
		}
		found = append(found, each)
	}
	return found
}

// validID is what ids of files look like.
var validID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

// InputFile returns the id of the file with the calls of a batch, from the body that submits it.
func InputFile(body []byte) (string, error) {
	values, err := Fields(body, "input_file_id")
	if err != nil {
		return "", err
	}
	id := text(values[0])
	if !validID.MatchString(id) {
		return "", errors.New(`ratelimit: "input_file_id" must be the id of a file`)
	}
	return id, nil
}
