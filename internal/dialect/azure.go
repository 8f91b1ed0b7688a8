package dialect

import (
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Azure is OpenAI's models in Azure deployments.
const Azure llm.Provider = "azure"

var _ = register(dialect{
	provider:         Azure,
	hosts:            []string{"openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"},
	modelFolder:      "/openai/deployments/",
	names:            nameRules{same: []nameRule{strings.ToLower}},
	fields:           []field{{name: "data_sources", kind: fieldStored}, {name: "dataSources", kind: fieldStored}},
	boundNames:       openAIBounds,
	overhead:         openAIOverhead,
	exactTokenizer:   true,
	hidesReasoning:   true,
	countsBound:      boundCounted,
	ignoresBodyModel: true,
	keyHeader:        "Api-Key",
	freeEnds:         openAIFreeEnds,
	bucketPer:        func(llm.Window) time.Duration { return time.Minute },
})
