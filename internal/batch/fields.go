package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// errObject is the error of JSON that is no object.
var errObject = errors.New("ratelimit: it must be a JSON object")

// Fields returns the values of the fields of a JSON object that have these names, in their order; nil
// for one that is missing. It refuses an object that has one of them twice, or in another case:
// servers would not agree on which of them counts.
func Fields(object []byte, names ...string) ([]json.RawMessage, error) {
	values := make([]json.RawMessage, len(names))
	decoder := json.NewDecoder(bytes.NewReader(object))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, errObject
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, errObject
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, errObject
		}
		name, _ := key.(string)
		i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
		switch {
		case i < 0:
		case names[i] != name:
			return nil, fmt.Errorf("ratelimit: it has a field %.40q: it must be %q", name, names[i])
		case values[i] != nil:
			return nil, fmt.Errorf("ratelimit: it has the field %q twice", name)
		default:
			values[i] = value
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errObject
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errObject
	}
	return values, nil
}

// text returns a value that is a string, or "".
func text(value json.RawMessage) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}
