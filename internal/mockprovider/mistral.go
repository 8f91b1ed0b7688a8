package mockprovider

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

var _ = register(imitation{
	provider:    dialect.Mistral,
	routes:      []route{{end: "/v1/ocr", endpoint: endpoint{api: dialect.OCR, format: ocr{}}}},
	retryHeader: retryAfter,
	errorBody: func(f failure) object {
		return object{"object": "error", "message": f.message, "type": cmp.Or(f.code, openAICodes.of(f.status)), "param": nil, "code": strconv.Itoa(f.status)}
	},
	limits: func(h http.Header, at limitStates, _ limitTime) {
		for name, s := range map[string]limitState{"req": at.requests, "tokens": at.tokens} {
			if s.limit == 0 {
				continue
			}
			h.Set(fmt.Sprintf("X-Ratelimit-Limit-%s-Minute", name), strconv.Itoa(s.limit))
			h.Set(fmt.Sprintf("X-Ratelimit-Remaining-%s-Minute", name), strconv.Itoa(s.remaining))
		}
	},
})

// ocr is Mistral's OCR. A document has three pages, unless the request lists those to be read.
type ocr struct{ single }

func (ocr) read(c *Call) error {
	if c.fields["document"] == nil {
		return errors.New("document: it is required")
	}
	c.units[llm.Pages] = 3
	if list, ok := c.fields["pages"].([]any); ok {
		c.units[llm.Pages] = int64(len(list))
	}
	return nil
}

func (ocr) whole(a *answer) object {
	pages := make([]object, a.units[llm.Pages])
	for i := range pages {
		pages[i] = object{"index": i, "markdown": "a page", "images": []object{}, "dimensions": nil}
	}
	return object{"pages": pages, "model": a.Model, "usage_info": object{"pages_processed": len(pages), "doc_size_bytes": 100}}
}
