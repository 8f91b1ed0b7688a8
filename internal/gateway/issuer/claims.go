package issuer

import "strings"

// Claims are what a token says.
type Claims map[string]any

// find returns a claim by its name, or by a path with dots: realm.roles is the member roles of the claim realm.
func (c Claims) find(name string) any {
	if value, ok := c[name]; ok {
		return value
	}
	first, rest, ok := strings.Cut(name, ".")
	inside, isObject := c[first].(map[string]any)
	if !ok || !isObject {
		return nil
	}
	return Claims(inside).find(rest)
}

// Has reports whether there is a claim.
func (c Claims) Has(name string) bool { return c.find(name) != nil }

// Text returns a claim that is a text, or a list of one text; otherwise "".
func (c Claims) Text(name string) string {
	if list := c.List(name); len(list) == 1 {
		return list[0]
	}
	return ""
}

// List returns a claim that is a list of texts, or one text, whatever is in it. What is no text in a list is left out.
func (c Claims) List(name string) (list []string) {
	switch value := c.find(name).(type) {
	case string:
		if value != "" {
			list = []string{value}
		}
	case []any:
		for _, each := range value {
			if text, ok := each.(string); ok && text != "" {
				list = append(list, text)
			}
		}
	}
	return list
}

// Words returns a claim that is a list of texts, or one text with spaces between its words.
func (c Claims) Words(name string) []string {
	if text, ok := c.find(name).(string); ok {
		return strings.Fields(text)
	}
	return c.List(name)
}
