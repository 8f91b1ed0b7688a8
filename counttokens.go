package ratelimit

import (
	"context"

	"dappco.re/go/core/go-ratelimit/internal/tokencount"
)

// TokenCounter asks a provider how many tokens a text is.
type TokenCounter = tokencount.Counter

// CountTokens asks Gemini how many tokens a text is. [TokenCounter] asks other
// providers.
func CountTokens(ctx context.Context, apiKey, model, text string) (int, error) {
	return TokenCounter{Provider: ProviderGemini, APIKey: apiKey}.Count(ctx, model, text)
}
