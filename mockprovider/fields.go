package mockprovider

import "encoding/json"

// object is one of JSON, to be sent.
type object map[string]any

// encode returns a value that is made of what JSON has.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic("ratelimit: mockprovider: " + err.Error())
	}
	return text
}

// fields are those of a JSON object that was received. What is not there, or is of
// another kind, is zero.
type fields map[string]any

func (f fields) text(name string) string {
	text, _ := f[name].(string)
	return text
}

func (f fields) flag(name string) bool {
	flag, _ := f[name].(bool)
	return flag
}

func (f fields) number(name string) int {
	n, _ := f[name].(float64)
	return int(min(max(n, 0), mostTokens))
}

func (f fields) in(name string) fields {
	object, _ := f[name].(map[string]any)
	return object
}

// count returns how many tokens are in some of the fields.
func (f fields) count(names ...string) (n int) {
	for _, name := range names {
		n += countIn(f[name])
	}
	return n
}
