package gateway_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go/auth/bearer"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// cutter passes streams of a mock on as the gateway does, and cuts them off after a few tokens.
type cutter struct{ mock string }

func (c cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	endpoint, _ := dialect.Recognize(r.Method, r.URL)
	if strings.HasPrefix(r.URL.Path, "/model/") {
		endpoint, _ = dialect.RecognizeAt(dialect.Bedrock, r.Method, r.URL)
	}
	response, err := http.Post(c.mock+r.URL.RequestURI(), "application/json", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	m := dialect.NewMeter(endpoint.API, response.Header)
	guard := m.Guard(response.Body, false, func(most int) bool { return most <= 50 }, func() []byte {
		return m.Refusal(endpoint, dialect.Refusal{Status: 429, Retry: true, Message: "cut off: nothing is left"})
	})
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	for buffer := make([]byte, 4096); ; {
		n, err := guard.Read(buffer)
		w.Write(buffer[:n])
		w.(http.Flusher).Flush()
		if err != nil {
			return
		}
	}
}

// Every SDK shows the pieces of a stream that is cut off, and then reports an error.
func TestSDKsReportStreamsThatAreCutOff(t *testing.T) {
	mock := httptest.NewServer(mockprovider.New(mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply { return mockprovider.Reply{Output: 60} }}))
	t.Cleanup(mock.Close)
	server := httptest.NewServer(cutter{mock.URL})
	t.Cleanup(server.Close)
	overEach(t, func(t *testing.T, s *sdk) {
		for _, call := range []string{"stream", "responses-stream"} {
			if !slices.Contains(slices.Concat(every, s.calls), call) {
				continue
			}
			got := s.do(t, ask{Call: call, Base: server.URL + s.root, Key: "k", Model: s.model})
			if got.Error == nil || !strings.Contains(got.Error.Message, "cut off: nothing is left") || len(got.Shown) == 0 {
				t.Errorf("%s: %d pieces, %+v", call, len(got.Shown), got.Error)
			}
		}
	})
}

// Amazon's SDK reports it as an exception of the stream.
func TestBedrockReportsStreamsThatAreCutOff(t *testing.T) {
	mock := httptest.NewServer(mockprovider.New(mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply { return mockprovider.Reply{Output: 60} }}))
	t.Cleanup(mock.Close)
	server := httptest.NewTLSServer(cutter{mock.URL})
	t.Cleanup(server.Close)
	c := bedrockruntime.New(bedrockruntime.Options{
		Region: "eu-north-1", BaseEndpoint: aws.String(server.URL), HTTPClient: server.Client(), RetryMaxAttempts: 1,
		BearerAuthTokenProvider: bearer.StaticTokenProvider{Token: bearer.Token{Value: "k"}},
		AuthSchemePreference:    []string{"httpBearerAuth"},
	})
	stream, err := c.ConverseStream(t.Context(), &bedrockruntime.ConverseStreamInput{ModelId: aws.String(bedrockModel), Messages: conversation()})
	if err != nil {
		t.Fatal(err)
	}
	pieces := 0
	for range stream.GetStream().Events() {
		pieces++
	}
	if err := stream.GetStream().Err(); err == nil || pieces == 0 || !strings.Contains(err.Error(), "ThrottlingException") || !strings.Contains(err.Error(), "cut off: nothing is left") {
		t.Errorf("%d pieces, %v", pieces, err)
	}
}
