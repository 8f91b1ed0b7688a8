package redisstore

import (
	_ "embed"
	"regexp"
)

//go:embed arithmetic.lua
var source string

// arithmetic is the script with its constants in place. A line
//
//	const NAME value
//
// defines one. To Lua they would be variables, which cost time in every call.
var arithmetic = constants(source)

var (
	definition = regexp.MustCompile(`(?m)^const ([A-Z_]+) ('[^']*'|[0-9]+).*\n`)
	capitals   = regexp.MustCompile(`\b[A-Z][A-Z_]*\b`)
)

func constants(source string) string {
	values := map[string]string{}
	for _, found := range definition.FindAllStringSubmatch(source, -1) {
		values[found[1]] = found[2]
	}
	return capitals.ReplaceAllStringFunc(definition.ReplaceAllString(source, ""), func(name string) string {
		if value, ok := values[name]; ok {
			return value
		}
		return name
	})
}
