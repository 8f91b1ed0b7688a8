//go:build !nodashboard

package dashboard

import (
	"encoding/json"

	"dappco.re/go/core/go-ratelimit/internal/kind"
)

// kindsFile is the module with the kinds of limits, and the units that calls use beside tokens.
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

// besideUnit is what the page knows of a unit that calls use beside tokens.
type besideUnit struct {
	Name    string `json:"name"` // in reports of usage
	Heading string `json:"heading"`
}

// kindsScript returns the module with the kinds of limits and the units, as the tables have them.
func kindsScript() string {
	var list []limitKind
	for _, owner := range []kind.Owner{kind.Model, kind.Project, kind.Run} {
		for _, k := range kind.Of(owner) {
			list = append(list, limitKind{k.Name(), k.Setting(), owner, k.Unit().Name(), k.Words(), k.Label(), k.Unit().IsMoney()})
		}
	}
	var units []besideUnit
	for _, u := range kind.Beside {
		units = append(units, besideUnit{u.Name(), u.Heading})
	}
	kinds, _ := json.Marshal(list) // strings and flags can be marshalled
	beside, _ := json.Marshal(units)
	return "// The kinds of limits, and what calls use beside tokens, as the gateway has them.\nexport const kinds = " + string(kinds) + ";\nexport const units = " + string(beside) + ";\n"
}
