package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/auth/bearer"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const bedrockModel = "anthropic.test-v1:0"

// bedrockSDK returns Amazon's SDK for Go, which calls the gateway with a virtual key in
// the place of a key of Bedrock. It sends one over TLS only.
func (r *rig) bedrockSDK(t *testing.T, options ...func(*bedrockruntime.Options)) *bedrockruntime.Client {
	t.Helper()
	listening := httptest.NewTLSServer(r)
	t.Cleanup(listening.Close)
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "eu-north-1", BaseEndpoint: aws.String(listening.URL + "/bedrock"), HTTPClient: listening.Client(), RetryMaxAttempts: 1,
		BearerAuthTokenProvider: bearer.StaticTokenProvider{Token: bearer.Token{Value: r.key}},
		AuthSchemePreference:    []string{"httpBearerAuth"},
	}, options...)
}

// told makes the mock answer as told says.
func told(mock string) func(*bedrockruntime.Options) {
	return bedrockruntime.WithAPIOptions(smithyhttp.SetHeaderValue("X-Mock", mock))
}

// conversation is the body of a call of Bedrock's Converse API.
func conversation() []types.Message {
	return []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: question}}}}
}

// anthropicBody is the body of a call of Invoke.
const anthropicBody = `{"anthropic_version":"bedrock-2023-05-31","max_tokens":100,"messages":[{"role":"user","content":"How is the weather in Paris?"}]}`

// converse makes a call of Converse.
func converse(t *testing.T, c *bedrockruntime.Client, model string, options ...func(*bedrockruntime.Options)) (*bedrockruntime.ConverseOutput, error) {
	return c.Converse(t.Context(), &bedrockruntime.ConverseInput{ModelId: &model, Messages: conversation()}, options...)
}

// Bedrock's calls passed without a model and without tokens.
func TestBedrockIsCounted(t *testing.T) {
	r := newRig(t, with(ample))
	c := r.bedrockSDK(t)
	for _, model := range []string{bedrockModel, "best", "arn:aws:bedrock:eu-north-1::foundation-model/" + bedrockModel} {
		whole, err := converse(t, c, model, told("output=5 cached=3"))
		if err != nil || *whole.Usage.OutputTokens != 5 {
			t.Fatalf("%s: %+v, %v", model, whole, err)
		}
	}
	stream, err := c.ConverseStream(t.Context(), &bedrockruntime.ConverseStreamInput{ModelId: aws.String(bedrockModel), Messages: conversation()}, told("output=7 reasoning=2"))
	if err != nil {
		t.Fatal(err)
	}
	var last types.ConverseStreamOutput
	for last = range stream.GetStream().Events() {
	}
	if end, ok := last.(*types.ConverseStreamOutputMemberMetadata); !ok || *end.Value.Usage.OutputTokens != 9 || stream.GetStream().Err() != nil {
		t.Fatalf("the stream ends with %+v, %v", last, stream.GetStream().Err())
	}
	invoked, err := c.InvokeModel(t.Context(), &bedrockruntime.InvokeModelInput{ModelId: aws.String(bedrockModel), Body: []byte(anthropicBody)}, told("output=6"))
	if err != nil || len(invoked.Body) == 0 {
		t.Fatalf("%+v, %v", invoked, err)
	}
	invoking, err := c.InvokeModelWithResponseStream(t.Context(), &bedrockruntime.InvokeModelWithResponseStreamInput{ModelId: aws.String(bedrockModel), Body: []byte(anthropicBody)}, told("output=8 cache-write=2"))
	if err != nil {
		t.Fatal(err)
	}
	pieces := 0
	for range invoking.GetStream().Events() {
		pieces++
	}
	if pieces < 8 || invoking.GetStream().Err() != nil {
		t.Fatalf("%d pieces, %v", pieces, invoking.GetStream().Err())
	}
	r.idle(t)
	for _, record := range r.Recent("", 0, 100) {
		if record.Quota != "bedrock/"+bedrockModel || !record.Exact || record.Output < 5 || record.Input == 0 {
			t.Errorf("it is recorded as %+v", record)
		}
	}
	sent := r.provider.Totals()
	input, output := 0, 0
	for _, total := range sent {
		input, output = input+total.Input-total.Cached, output+total.Output
	}
	if s := r.Models().Stats("bedrock/" + bedrockModel); s.RPM != 6 || s.TPM != input+output {
		t.Errorf("it is charged %+v; the provider has sent %+v", s, sent)
	}
}

// An error in the middle of a stream pauses the model, as one at its beginning does.
func TestBedrockThrottlesInAStream(t *testing.T) {
	r := newRig(t, with(ample))
	stream, err := r.bedrockSDK(t).ConverseStream(t.Context(), &bedrockruntime.ConverseStreamInput{ModelId: aws.String(bedrockModel), Messages: conversation()}, told("output=20 fault=error after=4 code=throttlingException"))
	if err != nil {
		t.Fatal(err)
	}
	for range stream.GetStream().Events() {
	}
	if told := new(types.ThrottlingException); !errors.As(stream.GetStream().Err(), &told) {
		t.Fatalf("the stream ends with %v", stream.GetStream().Err())
	}
	r.idle(t)
	if r.Models().Paused("bedrock/"+bedrockModel) == 0 {
		t.Error("the model is not paused")
	}
}

// amazonError returns what Amazon's SDK shows of an error.
func amazonError(t *testing.T, err error) (code, message string, status int) {
	t.Helper()
	var api smithy.APIError
	var response *smithyhttp.ResponseError
	if !errors.As(err, &api) || !errors.As(err, &response) {
		t.Fatalf("the SDK shows %v", err)
	}
	return api.ErrorCode(), api.ErrorMessage(), response.HTTPStatusCode()
}

// Amazon's SDK shows why a call was refused, by the code that it knows, and no
// UnknownError.
func TestBedrockRefusal(t *testing.T) {
	r := newRig(t, with("max_rpm: 1", "defaults: {max_wait: 0s}"))
	c := r.bedrockSDK(t)
	if _, err := converse(t, c, bedrockModel); err != nil {
		t.Fatal(err)
	}
	_, err := converse(t, c, bedrockModel)
	if code, message, status := amazonError(t, err); code != "ThrottlingException" || message == "" || status != http.StatusTooManyRequests {
		t.Errorf("it shows %q, %q, %d", code, message, status)
	}
	r.key = "rlk-nobodys"
	_, err = converse(t, r.bedrockSDK(t), bedrockModel)
	if code, message, status := amazonError(t, err); code != "UnrecognizedClientException" || message == "" || status != http.StatusUnauthorized {
		t.Errorf("it shows %q, %q, %d", code, message, status)
	}
}

// A client that signs, be it with its virtual key in the place of credentials, learns how
// to send the key: it saw an UnknownError.
func TestASignatureInThePlaceOfAKey(t *testing.T) {
	r := newRig(t, with(ample))
	signs := func(o *bedrockruntime.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDCLIENT", SecretAccessKey: r.key}, nil
		})
		o.AuthSchemePreference = []string{"sigv4"}
	}
	_, err := converse(t, r.bedrockSDK(t, signs), bedrockModel)
	if code, message, status := amazonError(t, err); code != "UnrecognizedClientException" || !strings.Contains(message, "AWS_BEARER_TOKEN_BEDROCK") || status != http.StatusUnauthorized {
		t.Errorf("it shows %q, %q, %d", code, message, status)
	}
}
