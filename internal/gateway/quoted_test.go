package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Groq quotes an answer that is not the demanded JSON in an error, which is charged as an
// answer. Otherwise a client that demands JSON, and a story in its prompt, would read stories
// for nothing.
func TestAnswersThatAreQuotedInErrorsAreCharged(t *testing.T) {
	story := strings.Repeat("Once upon a time. ", 1000)
	for kind, least := range map[string]int{"groq": len(story) / 6, "mistral": 0} {
		r := newRigBefore(t, "providers: {x: {kind: "+kind+", base_url: MOCK, models: {gpt-4o: {max_tpm: 100000}}}}\n",
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				io.WriteString(w, `{"error":{"message":"Failed to generate JSON.","code":"json_validate_failed","failed_generation":"`+story+`"}}`)
			}))
		if a := r.post(t, "/x/v1/chat/completions", hello); a.status != 400 || !strings.Contains(a.body, story) {
			t.Errorf("%s: %d %.200s", kind, a.status, a.body)
		}
		r.settled(t)
		if s := r.Models().Stats("x/gpt-4o"); s.TPM < least || least == 0 && s.TPM > 0 {
			t.Errorf("%s: %d tokens are charged, and the answer has %d at least", kind, s.TPM, least)
		}
	}
}
