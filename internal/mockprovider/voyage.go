package mockprovider

import (
	"dappco.re/go/core/go-ratelimit/llm"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

var _ = register(imitation{
	provider: dialect.Voyage,
	routes: []route{
		{end: "/multimodalembeddings", endpoint: endpoint{api: dialect.Embeddings, format: voyageEmbed{}}},
		{end: "/v1/rerank", endpoint: endpoint{api: dialect.CohereRerank, format: tokenRerank{}}},
	},
	errorBody:   func(f failure) object { return object{"detail": f.message} },
	retryHeader: retryAfter,
})

// voyageEmbed is Voyage's embeddings of texts and images.
type voyageEmbed struct{ embeddings }

func (voyageEmbed) read(c *Call) error {
	list, _ := c.fields["inputs"].([]any)
	c.Answers, c.Prompt = max(len(list), 1), c.fields.count("inputs")
	return nil
}

func (f voyageEmbed) whole(a *answer) object {
	o := f.embeddings.whole(a)
	o["usage"] = object{"text_tokens": a.usage.input, "image_pixels": 0, "total_tokens": a.usage.input}
	return o
}

// tokenRerank is a ranking that is billed by its tokens, as Voyage, Jina, Together and Fireworks have it: the query is read
// with each document.
type tokenRerank struct{ cohereRerank }

func (f tokenRerank) read(c *Call) error {
	if err := f.cohereRerank.read(c); err != nil {
		return err
	}
	c.units = llm.Units{}
	c.Prompt = c.fields.count("documents") + c.Answers*c.fields.count("query")
	return nil
}

func (f tokenRerank) whole(a *answer) object {
	o := f.cohereRerank.whole(a)
	delete(o, "meta")
	o["usage"] = object{"total_tokens": a.usage.input}
	return o
}
