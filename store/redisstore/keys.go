package redisstore

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// Keys in Redis are
//
//	<namespace>:{<part>}:<length of the key>:<key>        the account of a key
//	<namespace>:{<part>}:<length of the key>:<key>:log    its sliding log
//
// The part is a hash of the key up to its last slash, or of all of it if it has none. So the keys
// of one model or project are in one hash slot, and one call decides on all of them. The length
// tells any two keys apart, whatever characters they have.

// partOf returns the part of the keyspace that a key is in.
func partOf(key string) int {
	if slash := strings.LastIndexByte(key, '/'); slash >= 0 {
		key = key[:slash]
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % parts)
}

const logSuffix = ":log"

// redisKey returns the name of a key in Redis.
func (r *remote) redisKey(part int, key string) string {
	return r.namespace + ":{" + strconv.Itoa(part) + "}:" + strconv.Itoa(len(key)) + ":" + key
}

// keyOf returns the key that has a name in Redis, and whether the name is that of the key's log. ok is
// false for names of anything else.
func (r *remote) keyOf(name string) (key string, log, ok bool) {
	rest, ok := strings.CutPrefix(name, r.namespace+":{")
	if !ok {
		return "", false, false
	}
	_, rest, _ = strings.Cut(rest, "}:")
	length, rest, _ := strings.Cut(rest, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(rest) {
		return "", false, false
	}
	key, rest = rest[:n], rest[n:]
	log = rest == logSuffix
	if rest != "" && !log || r.redisKey(partOf(key), key) != strings.TrimSuffix(name, rest) {
		return "", false, false
	}
	return key, log, true
}

// pattern returns a pattern that matches the names of all keys that begin with prefix, and perhaps
// other names.
func (r *remote) pattern(prefix string) string {
	escape := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)
	return escape.Replace(r.namespace) + ":{*}:*:" + escape.Replace(prefix) + "*"
}
