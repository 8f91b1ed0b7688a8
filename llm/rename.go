package llm

import (
	"encoding/json"
	"strings"
)

// Rename returns the path and the body of a request as one for another model, wherever
// they name it. Neither is changed in any other way.
func (r *Request) Rename(path string, body []byte, model string) (string, []byte) {
	if r.inPath {
		path = renamePath(path, r.Model, model)
	}
	if r.name.to == 0 || len(body) != r.size {
		return path, body
	}
	name, _ := json.Marshal(model) // a string: it cannot fail
	renamed := make([]byte, 0, len(body)+len(name))
	renamed = append(renamed, body[:r.name.from]...)
	renamed = append(renamed, name...)
	return path, append(renamed, body[r.name.to:]...)
}

// renamePath renames the model that a path names: Google's before a colon, others below
// a folder.
func renamePath(path, from, to string) string {
	if before, after, ok := strings.Cut(path, "/model/"+from+"/"); ok { // Bedrock's
		return before + "/model/" + to + "/" + after
	}
	if at, end, _ := modelIn(path); at < end {
		return path[:at] + to + path[end:]
	}
	i := strings.LastIndex(path, "/"+from+":")
	if i < 0 {
		return path
	}
	return path[:i+1] + to + path[i+1+len(from):]
}
