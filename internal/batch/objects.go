package batch

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
)

// Object is what a provider says of a batch.
type Object struct {
	ID         string
	Status     string // OpenAI's
	OutputFile string // the file with the results of OpenAI's; empty: there is none yet, or never
}

// Ended reports whether nothing more happens to a batch of OpenAI's.
func (o *Object) Ended() bool {
	return slices.Contains([]string{"completed", "failed", "expired", "cancelled"}, o.Status)
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
