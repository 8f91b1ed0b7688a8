package redisstore

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// Keys in Redis are
//
//	<namespace>:{<part>}:<length of the key>:<key>
//
// The part is a hash of the key up to its last slash, or of all of it if it has none. So the keys
// of one model or project are in one hash slot, and one call decides on all of them. The length
// tells a key that ends in :log from the log of another key, which older versions had under such a name.

// partOf returns the part of the keyspace that a key is in.
func partOf(key string) int {
	if slash := strings.LastIndexByte(key, '/'); slash >= 0 {
		key = key[:slash]
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % parts)
}

// redisKey returns the name of a key in Redis.
func (r *remote) redisKey(part int, key string) string {
	return r.namespace + ":{" + strconv.Itoa(part) + "}:" + strconv.Itoa(len(key)) + ":" + key
}

// keyOf returns the key that has a name in Redis. ok is false for names of anything else.
func (r *remote) keyOf(name string) (key string, ok bool) {
	_, rest, _ := strings.Cut(strings.TrimPrefix(name, r.namespace+":{"), "}:")
	_, key, _ = strings.Cut(rest, ":")
	return key, r.redisKey(partOf(key), key) == name
}

// pattern returns a pattern that matches the names of all keys that begin with prefix, and perhaps
// other names.
func (r *remote) pattern(prefix string) string {
	escape := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)
	return escape.Replace(r.namespace) + ":{*}:*:" + escape.Replace(prefix) + "*"
}
