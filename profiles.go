package ratelimit

import (
	"dappco.re/go/core/go-ratelimit/llm"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// Provider names the service that serves a model.
type Provider = llm.Provider

const (
	ProviderGemini    = dialect.Gemini
	ProviderOpenAI    = dialect.OpenAI
	ProviderAnthropic = dialect.Anthropic

	// ProviderLocal is for models on one's own hardware (Ollama, MLX,
	// llama.cpp). It has no quotas by default.
	ProviderLocal Provider = "local"
)

// ProviderProfile is the quotas of a provider's models.
type ProviderProfile struct {
	Provider Provider
	Models   map[string]ModelQuota
}

// DefaultProfiles returns the providers' quotas as published in February 2026.
// They differ from account to account and change often: what your provider
// shows goes into [Config].
func DefaultProfiles() map[Provider]ProviderProfile {
	return map[Provider]ProviderProfile{
		ProviderGemini: {ProviderGemini, map[string]ModelQuota{
			"gemini-3-pro-preview":   {MaxRPM: 150, MaxTPM: 1_000_000, MaxRPD: 1000},
			"gemini-3-flash-preview": {MaxRPM: 150, MaxTPM: 1_000_000, MaxRPD: 1000},
			"gemini-2.5-pro":         {MaxRPM: 150, MaxTPM: 1_000_000, MaxRPD: 1000},
			"gemini-2.0-flash":       {MaxRPM: 150, MaxTPM: 1_000_000},
			"gemini-2.0-flash-lite":  {},
		}},
		ProviderOpenAI: {ProviderOpenAI, map[string]ModelQuota{
			"gpt-4o":      {MaxRPM: 500, MaxTPM: 30_000},
			"gpt-4o-mini": {MaxRPM: 500, MaxTPM: 200_000},
			"gpt-4-turbo": {MaxRPM: 500, MaxTPM: 30_000},
			"o1":          {MaxRPM: 500, MaxTPM: 30_000},
			"o1-mini":     {MaxRPM: 500, MaxTPM: 200_000},
			"o3-mini":     {MaxRPM: 500, MaxTPM: 200_000},
		}},
		ProviderAnthropic: {ProviderAnthropic, map[string]ModelQuota{
			"claude-opus-4":    {MaxRPM: 50, MaxTPM: 40_000},
			"claude-sonnet-4":  {MaxRPM: 50, MaxTPM: 40_000},
			"claude-haiku-3.5": {MaxRPM: 50, MaxTPM: 50_000},
		}},
		ProviderLocal: {ProviderLocal, map[string]ModelQuota{}},
	}
}
