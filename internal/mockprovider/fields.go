package mockprovider

import "encoding/json"

// object is a JSON object to be sent.
type object map[string]any

// encode encodes a value as JSON, which must not fail.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic("ratelimit: mockprovider: " + err.Error())
	}
	return text
}

// fields are the fields of a JSON object that was received. A field that is missing or of another
// type reads as zero.
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
	return int(min(max(n, 0), maxTokens))
}

func (f fields) in(name string) fields {
	object, _ := f[name].(map[string]any)
	return object
}

// count returns how many tokens some of the fields have.
func (f fields) count(names ...string) (n int) {
	for _, name := range names {
		n += countIn(f[name])
	}
	return n
}
