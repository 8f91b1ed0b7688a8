package main

import (
	"fmt"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/kind"
)

const aboutLimits = `# Every kind of limit

Written by ` + "`make docs`" + ` from the table in ` + "`internal/kind`" + `; do not edit. A limit has one name everywhere: the
configuration, the admin API, flags and events, metrics, headers and pages call it so. A project's share of a limit ends
with ` + "`_share`" + `, such as ` + "`max_tpm_share`" + `, and the pace of a model's limit with ` + "`_pace`" + `. [The glossary](../glossary.md)
explains the words. Users and keys have the kinds of projects.

| name | set by | of each | limits | shared | on narrow screens |
|---|---|---|---|---|---|
`

// limits returns the page of all kinds of limits.
func limits(string) (string, error) {
	out := new(strings.Builder)
	out.WriteString(aboutLimits)
	for _, owner := range []kind.Owner{kind.Model, kind.Project, kind.Run} {
		for _, k := range kind.Of(owner) {
			shared := ""
			if k.IsShared() {
				shared = "yes"
			}
			fmt.Fprintf(out, "| `%s` | `%s` | %s | %s | %s | %s |\n", k.Name(), k.Setting(), owner, k.Words(), shared, k.Label())
		}
	}
	return out.String(), nil
}
