package mockprovider

import "encoding/json"

// Parts are the parts of a call's tokens that have prices of their own, its service tier, and its
// cost. The server reports those that the API of the call has a place for, and no more tokens than
// the whole has.
type Parts struct {
	CacheWriteHour int // of CacheWrite: Anthropic's and Converse's

	InputAudio, CachedAudio, InputImage int // of the prompt: OpenAI's and Gemini's
	OutputAudio, OutputImage            int // of the answer, without reasoning: OpenAI's and Gemini's

	Tier string      // the service tier, in the provider's words, or "fast", which is Anthropic's speed; empty: it is not reported
	Cost json.Number // in dollars: OpenRouter's; empty: it is not reported
}

// within returns the parts of a usage, none of which is more than its whole.
func (p Parts) within(u usage) Parts {
	p.CacheWriteHour = min(p.CacheWriteHour, u.cacheWrite)
	p.InputAudio = min(p.InputAudio, u.input)
	p.InputImage = min(p.InputImage, u.input-p.InputAudio)
	p.CachedAudio = min(p.CachedAudio, p.InputAudio, u.cached)
	p.OutputAudio = min(p.OutputAudio, u.output-u.reasoning)
	p.OutputImage = min(p.OutputImage, u.output-u.reasoning-p.OutputAudio)
	return p
}

// inputDetails returns the parts of a prompt in OpenAI's format.
func (u usage) inputDetails() object {
	o := object{"cached_tokens": u.cached}
	if p := u.parts; p.InputAudio > 0 || p.InputImage > 0 {
		o["audio_tokens"], o["image_tokens"], o["text_tokens"] = p.InputAudio, p.InputImage, u.input-p.InputAudio-p.InputImage
		o["cached_tokens_details"] = object{"audio_tokens": p.CachedAudio, "text_tokens": u.cached - p.CachedAudio}
	}
	return o
}

// outputDetails returns the parts of an answer in OpenAI's format.
func (u usage) outputDetails() object {
	o := object{"reasoning_tokens": u.reasoning}
	if p := u.parts; p.OutputAudio > 0 || p.OutputImage > 0 {
		o["audio_tokens"], o["image_tokens"] = p.OutputAudio, p.OutputImage
		o["text_tokens"] = u.output - u.reasoning - p.OutputAudio - p.OutputImage
	}
	return o
}

// modalities returns tokens by their modality, in Gemini's format.
func modalities(all, audio, image int) []object {
	list := []object{{"modality": "TEXT", "tokenCount": all - audio - image}}
	if audio > 0 {
		list = append(list, object{"modality": "AUDIO", "tokenCount": audio})
	}
	if image > 0 {
		list = append(list, object{"modality": "IMAGE", "tokenCount": image})
	}
	return list
}

// addTier adds the service tier to an object under a name, if there is one to report.
func (p Parts) addTier(o object, name string, value any) {
	if p.Tier != "" {
		o[name] = value
	}
}

// addCost adds the cost to usage in the format of completions, if there is one to report.
func (a *answer) addCost(u object) object {
	if a.style().reportsCost && a.usage.parts.Cost != "" {
		u["cost"], u["is_byok"] = a.usage.parts.Cost, false
		u["cost_details"] = object{"upstream_inference_cost": a.usage.parts.Cost}
	}
	return u
}
