package redisstore

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"regexp"
	"sync"
)

//go:embed lua
var lua embed.FS

// accounting is the text of the library before lua/session.lua. It is put together when a store is first made, because
// programs that link this package may have no Redis.
var accounting = sync.OnceValue(func() string { return constants(file("accounts") + file("books")) })

func file(name string) string {
	text, err := lua.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // cannot happen: the file is embedded
	}
	return string(text)
}

// library returns the library with a script before lua/session.lua, and its name, which is also that of its only function. Programs of
// different versions have libraries of different names, so that they can use one server.
func library(script string) (name, text string) {
	text = script + file("session")
	sum := sha1.Sum([]byte(text))
	name = "ratelimit_" + hex.EncodeToString(sum[:8])
	return name, "#!lua name=" + name + "\n" + text + "redis.register_function('" + name + "', session)\n"
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
