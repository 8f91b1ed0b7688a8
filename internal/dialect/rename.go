package dialect

import (
	"encoding/json"
	"slices"
)

// Rename returns the path and the body with another model's name wherever they name the model.
// Nothing else in them changes.
func (r *Request) Rename(path string, body []byte, model string) (string, []byte) {
	if r.inPath {
		path = renamePath(path, r.Model, model)
	}
	if r.modelSplice.to == 0 || len(body) != r.size {
		return path, body
	}
	name, _ := json.Marshal(model) // cannot fail: a string
	return path, slices.Concat(body[:r.modelSplice.from], name, body[r.modelSplice.to:])
}

// renamePath replaces the name of the model in a path.
func renamePath(path, from, to string) string {
	if at, end, _ := modelIn(path); at < end {
		return path[:at] + to + path[end:]
	}
	for _, d := range dialects {
		if d.renamePath == nil {
			continue
		}
		if renamed := d.renamePath(path, from, to); renamed != path {
			return renamed
		}
	}
	return path
}
