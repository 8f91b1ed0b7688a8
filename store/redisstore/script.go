package redisstore

import (
	"embed"
	"regexp"
	"strings"
	"sync"
)

//go:embed lua
var lua embed.FS

// arithmetic is the script before session.lua. Redis runs the whole text for each call, and defining
// the functions would cost more than most decisions. So all functions that takes from buckets do not
// need are defined within one function, which is only called when they are needed. The script is put together when a
// store is first made, because programs that link this package may have no Redis.
var arithmetic = sync.OnceValue(func() string {
	return constants(text("account", "take") +
		"function rest()\n" + text("numbers", "windows", "log", "ask", "settle", "whole", "books", "once") + "end\n" +
		text("run"))
})

// text returns the text of Lua files.
func text(names ...string) string {
	var all strings.Builder
	for _, name := range names {
		file, err := lua.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // cannot happen: the file is embedded
		}
		all.Write(file)
	}
	return all.String()
}

var (
	definition = regexp.MustCompile(`(?m)^const ([A-Z_]+) +('[^']*'|[0-9]+).*\n`)
	capitals   = regexp.MustCompile(`\b[A-Z][A-Z_]*\b`)
)

// constants replaces the constants in a text by their values. A line
//
//	const NAME value
//
// defines a constant. Lua has only variables, which each function would have to look up.
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
