package dialect

import (
	"cmp"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// What images cost at OpenAI, in tokens.
const (
	openAIImageBase = 85  // an image at low detail, and the fixed part of any other
	openAITile      = 170 // a tile of 512 by 512 pixels
)

var openAIImages = imageRules{
	cost: func(width, height int) int {
		width, height = fit(width, height, max(width, height), 2048)
		width, height = fit(width, height, min(width, height), 768)
		return openAIImageBase + openAITile*tiles(width, 512)*tiles(height, 512)
	},
	unknown: 1105, // an image of 1024 by 2048 pixels
	low:     openAIImageBase,
	most:    mostOpenAIImage,
	beyond:  true,
}

// The most tokens of an image, by the model.
const (
	boundImageGPT4oMini = 48_169 // 2,833 and 5,667 for each of eight tiles
	boundImageGPT4      = 3_779  // 1,536 patches, 2.46 tokens each; the larger models use 85 and 170 for each of eight tiles
	boundImageOpenAI    = 24_600 // 10,000 patches, as many tokens each
)

func mostOpenAIImage(model string) int {
	switch model = strings.ToLower(model); {
	case strings.Contains(model, "4o-mini"):
		return boundImageGPT4oMini
	case strings.Contains(model, "gpt-4"), strings.HasPrefix(model, "o1"), strings.HasPrefix(model, "o3"), strings.HasPrefix(model, "o4"):
		return boundImageGPT4
	}
	return boundImageOpenAI
}

// measureImages reads how many images a request asks for, and of which size and quality. Images that are edited are a
// part of the prompt.
func measureImages(b measuredBody) (m measured) {
	m.units[llm.Images], m.images = int64(b.answers), len(b.files)
	if strings.HasPrefix(b.model, "dall-e") { // the only models whose price depends on the size
		m.variant = cmp.Or(b.words[sizeWord], "1024x1024")
		if b.model != "dall-e-2" {
			m.variant = cmp.Or(b.words[qualityWord], "standard") + "-" + m.variant
		}
	}
	return m
}

// The tool that generates images, the model that it uses unless the request names another, and how many images are
// reserved for a request that does not bound them: an answer nearly always has one.
const (
	imageTool    = "image_generation"
	usualDrawing = "gpt-image-2"
	mostDrawn    = 4
)

// drawn returns what the tool that generates images has used.
func (s *numbers) drawn() llm.ToolTokens {
	return llm.ToolTokens{
		Input: int(s.n[drawnInput]), InputImage: int(min(s.n[drawnInputImage], s.n[drawnInput])),
		Output: int(s.n[drawnOutput]), OutputText: int(min(s.n[drawnText], s.n[drawnOutput])),
	}
}

// eitherModel returns a name for two models of which nobody knows which one is used. It has no price, and does not grow
// with more of them. The first may be empty.
func eitherModel(one, other string) string {
	switch {
	case one == "" || one == other:
		return other
	case strings.Contains(one, " or "):
		return one
	}
	return one + " or " + other
}
