package dialect

import (
	"encoding/json"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// aboutCache is for a request that changes when a cache of Gemini's ends. It names neither the model nor the tokens of the
// cache, which the provider knows.
var aboutCache = &about{
	at: func(path string, fields []byte) ([]string, bool) {
		if _, id := cutLast(path); !storedID.MatchString(id) || objectOf(fields) == nil {
			return nil, true
		}
		return []string{path}, true
	},
	with: func(s *Stored) (q Request, err error) {
		var cache storedCache
		if json.Unmarshal(s.texts[0], &cache) != nil {
			return q, errStored
		}
		body := objectOf(s.fields)
		if body["ttl"] != nil { // it begins when the request is sent, and less of what was paid for is left then
			cache.ExpireTime = cache.ExpireTime.Add(-s.Late)
		}
		until, other := body["expireTime"], body["expire_time"]
		if until == nil {
			until, other = other, nil
		}
		if other != nil { // nobody knows which of the two counts
			return q, errStored
		}
		return s.read(encoded(object{"model": cache.Model, "ttl": body["ttl"], "expireTime": until, "cache": cache}))
	},
}

// A storedCache is what the provider says of a cache.
type storedCache struct {
	Model         string    `json:"model"`
	ExpireTime    time.Time `json:"expireTime"`
	UsageMetadata struct {
		TotalTokenCount int64 `json:"totalTokenCount"`
	} `json:"usageMetadata"`
}

// measureCacheChange returns what it costs to keep a cache for longer than was paid for when it was made, or changed
// before. A cache that is to end earlier costs nothing, and nothing of it is given back.
func measureCacheChange(b measuredBody) (m measured) {
	var body struct {
		Cache storedCache `json:"cache"`
	}
	paid := time.Duration(0)
	if json.Unmarshal(b.text, &body) == nil {
		paid = max(time.Until(body.Cache.ExpireTime), 0)
	}
	wait, err := b.cacheWait(paid)
	if err != nil || body.Cache.UsageMetadata.TotalTokenCount <= 0 {
		m.units[llm.TokenHours] = -1
		return m
	}
	if more := wait - paid; more > 0 {
		seconds := int64(more / time.Second)
		m.units[llm.TokenHours] = tokenHours(body.Cache.UsageMetadata.TotalTokenCount, seconds+1)
	}
	return m
}
