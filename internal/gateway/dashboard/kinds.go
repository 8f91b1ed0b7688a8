//go:build !nodashboard

package dashboard

import (
	"encoding/json"

	"dappco.re/go/core/go-ratelimit/internal/kind"
)

// kindsFile is the module with the kinds of limits.
const kindsFile = "kinds.js"

// limitKind is what the page knows of a kind of limit.
type limitKind struct {
	Name    string     `json:"name"`
	Setting string     `json:"setting"`
	Owner   kind.Owner `json:"owner"`
	Unit    string     `json:"unit"`
	Words   string     `json:"words"`
	Label   string     `json:"label"`
	Money   bool       `json:"money"`
}

// kindsScript returns the module with the kinds of limits, as the table has them.
func kindsScript() string {
	var list []limitKind
	for _, owner := range []kind.Owner{kind.Model, kind.Project, kind.Run} {
		for _, k := range kind.Of(owner) {
			list = append(list, limitKind{k.Name(), k.Setting(), owner, k.Unit().Name(), k.Words(), k.Label(), k.Unit().IsMoney()})
		}
	}
	text, _ := json.Marshal(list) // strings and flags can be marshalled
	return "// The kinds of limits, as the gateway has them.\nexport const kinds = " + string(text) + ";\n"
}
