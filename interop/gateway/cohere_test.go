package gateway_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	cohere "github.com/cohere-ai/cohere-go/v2"
	"github.com/cohere-ai/cohere-go/v2/client"
	"github.com/cohere-ai/cohere-go/v2/option"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
)

// cohereSDK returns Cohere's SDK for Go, which calls the gateway.
func (r *rig) cohereSDK() *client.Client {
	return client.NewClient(client.WithBaseURL(r.url+"/cohere"), client.WithToken(r.key), client.WithHTTPHeader(http.Header{"X-Mock": {"output=4"}}), client.WithHTTPClient(&http.Client{Transport: atOnce{}}))
}

// atOnce is a transport that reads all of a body first: this SDK cannot read an event
// before the next one is there.
type atOnce struct{}

func (atOnce) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, err
}

// chatMessages are those of a call of Cohere's.
func chatMessages() cohere.ChatMessages {
	return cohere.ChatMessages{{Role: "user", User: &cohere.UserMessageV2{Content: &cohere.UserMessageV2Content{String: question}}}}
}

// Cohere's calls passed without a model and without tokens.
func TestCohereIsCounted(t *testing.T) {
	r := newRig(t, with(ample))
	c := r.cohereSDK()
	whole, err := c.V2.Chat(t.Context(), &cohere.V2ChatRequest{Model: "command-test", Messages: chatMessages()})
	if err != nil || *whole.Usage.Tokens.OutputTokens != 4 {
		t.Fatalf("%v, %v", whole, err)
	}
	stream, err := c.V2.ChatStream(t.Context(), &cohere.V2ChatStreamRequest{Model: "command-test", Messages: chatMessages()})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for err == nil {
		_, err = stream.Recv()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	embedded, err := c.V2.Embed(t.Context(), &cohere.V2EmbedRequest{Model: "embed-test", Texts: []string{question}, InputType: cohere.EmbedInputTypeSearchQuery})
	if err != nil || len(embedded.Embeddings.Float) != 1 {
		t.Fatalf("%v, %v", embedded, err)
	}
	r.settled(t)
	r.charged(t, "cohere/command-test", "command-test")
	r.charged(t, "cohere/embed-test", "embed-test")
}

// A rank reports no tokens: what was reserved for its texts stays charged.
func TestCohereRankIsCharged(t *testing.T) {
	r := newRig(t, with(ample))
	if _, err := r.cohereSDK().V2.Rerank(t.Context(), &cohere.V2RerankRequest{Model: "rerank-test", Query: question, Documents: []string{question, question}}); err != nil {
		t.Fatal(err)
	}
	r.idle(t)
	if s := r.Models().Stats("cohere/rerank-test"); s.RPM != 1 || s.TPM < r.provider.Totals()["rerank-test"].Input {
		t.Errorf("it is charged %+v; the provider has read %+v", s, r.provider.Totals()["rerank-test"])
	}
}

// Cohere's SDK shows why a call was refused, which stands where Cohere writes it.
func TestCohereRefusal(t *testing.T) {
	r := newRig(t, with("max_rpm: 1", "defaults: {max_wait: 0s}"))
	var err error
	for range 2 {
		_, err = r.cohereSDK().V2.Chat(t.Context(), &cohere.V2ChatRequest{Model: "command-test", Messages: chatMessages()}, option.WithMaxAttempts(1))
	}
	if told := new(cohere.TooManyRequestsError); !errors.As(err, &told) || !strings.Contains(told.Error(), `"message":"`) || strings.Contains(told.Error(), `"error":`) {
		t.Errorf("the SDK shows %v", err)
	}
	r.idle(t)
	if all := r.Recent("", 0, 2); all[1].Outcome != gateway.Denied {
		t.Errorf("it is recorded as %+v", all[1])
	}
}
