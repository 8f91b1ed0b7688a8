package dialect

import (
	"net/http"
	"net/url"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Voyage has embeddings of images beside OpenAI's, and Groq bills ten seconds of audio at least.
func TestVoyageAndGroq(t *testing.T) {
	for path, want := range map[string]API{"/v1/embeddings": Embeddings, "/v1/multimodalembeddings": Embeddings, "/v1/rerank": CohereRerank} {
		e, ok := Recognize(http.MethodPost, &url.URL{Scheme: "https", Host: "api.voyageai.com", Path: path})
		if !ok || e.API != want || e.Provider != Voyage {
			t.Errorf("%s is %+v", path, e)
		}
	}
	r := Request{Endpoint: Endpoint{Provider: Groq, API: Transcriptions}, Units: llm.Units{llm.AudioSeconds: 10}}
	for seconds, want := range map[int64]int64{3: 10, 30: 30, -1: 10} {
		if got := r.Used(llm.Usage{Units: llm.Units{llm.AudioSeconds: seconds}}).Units[llm.AudioSeconds]; got != want {
			t.Errorf("%d seconds are billed as %d, want %d", seconds, got, want)
		}
	}
}
