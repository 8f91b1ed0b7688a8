package redisstore

import (
	"embed"
	"regexp"
	"strings"
)

//go:embed lua
var lua embed.FS

// arithmetic is the script that session.lua is the end of. A call runs all of its
// text anew, and to make a function costs more than many a step: so what is not
// needed for takes from buckets is in a function of its own, which is called if it
// is.
var arithmetic = constants(
	text("account", "take") +
		"function rest()\n" + text("numbers", "windows", "log", "ask", "settle", "lease", "whole") + "end\n" +
		text("run"))

func text(names ...string) string {
	var all strings.Builder
	for _, name := range names {
		file, err := lua.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // it is embedded
		}
		all.Write(file)
	}
	return all.String()
}

var (
	definition = regexp.MustCompile(`(?m)^const ([A-Z_]+) +('[^']*'|[0-9]+).*\n`)
	capitals   = regexp.MustCompile(`\b[A-Z][A-Z_]*\b`)
)

// constants puts constants in their places. A line
//
//	const NAME value
//
// defines one. To Lua they would be variables, which every function that is made
// has to find.
func constants(text string) string {
	values := map[string]string{}
	for _, found := range definition.FindAllStringSubmatch(text, -1) {
		values[found[1]] = found[2]
	}
	return capitals.ReplaceAllStringFunc(definition.ReplaceAllString(text, ""), func(name string) string {
		if value, ok := values[name]; ok {
			return value
		}
		return name
	})
}
