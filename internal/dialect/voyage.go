package dialect

import "dappco.re/go/core/go-ratelimit/llm"

// Voyage embeds and ranks texts and images. Its name is that of the table of prices.
const Voyage llm.Provider = "voyageai"

var _ = register(dialect{
	provider:   Voyage,
	hosts:      []string{"api.voyageai.com"},
	paths:      map[string]API{"multimodalembeddings": Embeddings, "contextualizedembeddings": Embeddings},
	promptKeys: map[string]keyKind{"image_base64": keyImage},
	images:     &voyageImages,
})

// What images cost at Voyage: a token for each 560 pixels, of which an image may have 16 million.
const (
	voyagePixelsPerToken = 560
	boundImageVoyage     = 16_000_000/voyagePixelsPerToken + 1
)

var voyageImages = imageRules{
	cost:    func(width, height int) int { return min(1+width*height/voyagePixelsPerToken, boundImageVoyage) },
	unknown: boundImageVoyage,
	most:    func(string) int { return boundImageVoyage },
	beyond:  true,
}
