package issuer

import (
	"slices"
	"testing"
)

// A text is one entry, whatever is in it: whoever is in the group "Not admins" is in no group "admins".
func TestTextIsOneEntry(t *testing.T) {
	c := Claims{"group": "Not admins", "groups": []any{"Not admins", "sre", 5, ""}, "number": 5.0, "empty": "", "one": []any{"a b"}, "in": map[string]any{"side": "x"}}
	for name, want := range map[string][]string{
		"group": {"Not admins"}, "groups": {"Not admins", "sre"}, "number": nil, "empty": nil, "one": {"a b"}, "in.side": {"x"}, "in": nil, "none": nil,
	} {
		if got := c.List(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"group": "Not admins", "groups": "", "number": "", "empty": "", "one": "a b", "in.side": "x"} {
		if got := c.Text(name); got != want {
			t.Errorf("the text of %s: %q, want %q", name, got, want)
		}
	}
}
