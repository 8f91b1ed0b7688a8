package llmhttp_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// Calls of Amazon's SDK, which signs them, are charged what they use.
func TestBedrockIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := llmhttptest.New(t, llmhttptest.Script(mockprovider.Reply{Output: 9, Cached: 2}), ample)
		sdk := bedrockruntime.New(bedrockruntime.Options{
			Region: "eu-north-1", HTTPClient: w.Client,
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
			}),
		})
		prompt := []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "What is the weather in Paris?"}}}}
		if _, err := sdk.Converse(t.Context(), &bedrockruntime.ConverseInput{ModelId: aws.String(model), Messages: prompt}); err != nil {
			t.Fatal(err)
		}
		streamed, err := sdk.ConverseStream(t.Context(), &bedrockruntime.ConverseStreamInput{ModelId: aws.String(model), Messages: prompt})
		if err != nil {
			t.Fatal(err)
		}
		for range streamed.GetStream().Events() {
		}
		streamed.GetStream().Close()
		w.Settled()
		sent := w.Server.Totals()[model]
		if s := w.Limiter.Stats(model); s.RPM != 2 || s.TPM != sent.Input-sent.Cached+sent.Output || sent.Output != 18 {
			t.Errorf("it is charged %+v; the provider has sent %+v", s, sent)
		}
	})
}
