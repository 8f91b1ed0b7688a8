package batch

import (
	"encoding/json"
	"errors"
	"slices"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Result is what one call of a batch has used.
type Result struct {
	Free  bool   // the call costs nothing: it has failed, has expired or was cancelled, or it moderates
	Model string // as the answer names it
	Used  llm.Usage
}

var errResult = errors.New("ratelimit: it is no result of a batch")

// ReadResult reads a line of the results of a batch, in the format of OpenAI, of Anthropic or of Gemini. The usage
// of an answer that does not report it is not exact.
func ReadResult(line []byte) (Result, error) {
	var r struct {
		Response *struct {
			StatusCode int             `json:"status_code"`
			Body       json.RawMessage `json:"body"`
			Usage      json.RawMessage `json:"usageMetadata"` // Gemini's
		} `json:"response"`
		Error  json.RawMessage `json:"error"`
		Result *struct {
			Type    string          `json:"type"`
			Message json.RawMessage `json:"message"`
		} `json:"result"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return Result{}, errResult
	}
	switch {
	case r.Response != nil && len(r.Response.Usage) > 0:
		var whole InlineResult
		json.Unmarshal(line, &whole) // it can be read, since the line can
		return whole.Read()
	case r.Result != nil && r.Result.Type == "succeeded":
		return metered(dialect.Messages, r.Result.Message)
	case r.Result != nil && slices.Contains([]string{"errored", "canceled", "expired"}, r.Result.Type):
		return Result{Free: true}, nil
	case r.Response != nil && r.Response.StatusCode/100 == 2:
		return answered(r.Response.Body)
	case r.Response != nil && r.Response.StatusCode >= 400, r.Response == nil && len(r.Error) > 0 && string(r.Error) != "null":
		return Result{Free: true}, nil
	}
	return Result{}, errResult
}

// apis are the APIs whose answers are these objects. Images are none.
var apis = map[string]dialect.API{
	"chat.completion": dialect.Chat, "text_completion": dialect.Completions, "response": dialect.Responses, "list": dialect.Embeddings,
}

// answered returns the usage of an answer of OpenAI's.
func answered(body []byte) (Result, error) {
	var r struct {
		Object  string            `json:"object"`
		Created int64             `json:"created"`
		Data    json.RawMessage   `json:"data"`
		Results []json.RawMessage `json:"results"`
	}
	switch err := json.Unmarshal(body, &r); {
	case err != nil:
		return Result{}, errResult
	case apis[r.Object] != "":
		return metered(apis[r.Object], body)
	case r.Object == "" && r.Created > 0 && r.Data != nil:
		return metered(dialect.ImageGeneration, body)
	case r.Object == "" && len(r.Results) > 0 && r.Data == nil: // a moderation
		return Result{Free: true}, nil
	}
	return Result{}, errResult
}

func metered(api dialect.API, body []byte) (Result, error) {
	var r struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(body, &r) != nil {
		return Result{}, errResult
	}
	meter := dialect.NewMeter(api, nil)
	meter.Write(body)
	return Result{Model: r.Model, Used: meter.Usage()}, nil
}
