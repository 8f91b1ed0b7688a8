package gateway_test

import (
	"io"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
	"google.golang.org/genai/interactions/models/interactions"
	"google.golang.org/genai/interactions/models/operations"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
)

// perToken returns a bill by tokens of the prompt and of the answer, and by one unit beside them.
func perToken(input, output int64, unit int, each int64) func(mockprovider.Totals) int64 {
	return func(t mockprovider.Totals) int64 {
		return int64(t.Input)*input + int64(t.Output)*output + t.Units[unit]*each
	}
}

// openAISDK returns OpenAI's SDK for Go, which calls the gateway.
func (r *rig) openAISDK(mock string, more ...option.RequestOption) openai.Client {
	options := []option.RequestOption{option.WithMaxRetries(0), option.WithBaseURL(r.url + "/openai/v1"), option.WithAPIKey(r.key), option.WithHeader("X-Mock", mock)}
	return openai.NewClient(append(options, more...)...)
}

// anthropicSDK returns Anthropic's SDK for Go, which calls the gateway.
func (r *rig) anthropicSDK(mock string) anthropic.Client {
	return anthropic.NewClient(anthropicoption.WithMaxRetries(0), anthropicoption.WithBaseURL(r.url+"/anthropic"), anthropicoption.WithAPIKey(r.key), anthropicoption.WithHeader("X-Mock", mock))
}

// respond asks for a response of gpt-5.4 that may use a tool.
func respond(t *testing.T, r *rig, mock, previous string, tools ...responses.ToolUnionParam) (*responses.Response, error) {
	params := responses.ResponseNewParams{
		Model: "gpt-5.4", MaxOutputTokens: openai.Int(50), Tools: tools,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("what is new?")},
	}
	if previous != "" {
		params.PreviousResponseID = openai.String(previous)
	}
	client := r.openAISDK(mock)
	return client.Responses.New(t.Context(), params)
}

var openAIRows = map[string]sdkRow{
	"OpenAI embeds and moderates for nothing": {"text-embedding-3-small", func(t *testing.T, r *rig) error {
		client := r.openAISDK("")
		if _, err := client.Moderations.New(t.Context(), openai.ModerationNewParams{Model: openai.ModerationModelOmniModerationLatest, Input: openai.ModerationNewParamsInputUnion{OfString: openai.String("one")}}); err != nil {
			return err
		}
		_, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: "text-embedding-3-small", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"one", "two and three"}}})
		return err
	}, perToken(20, 0, 0, 0)},
	"OpenAI's responses draw": {"gpt-5.4", func(t *testing.T, r *rig) error {
		_, err := respond(t, r, "images=2", "", responses.ToolUnionParam{OfImageGeneration: &responses.ToolImageGenerationParam{Quality: "high"}})
		return err
	}, perToken(2_500, 15_000, llm.Images, 20*5_000+500*30_000)}, // by gpt-image-2
	"OpenAI's responses run code": {"gpt-5.4", func(t *testing.T, r *rig) error {
		container := responses.ToolCodeInterpreterContainerUnionParam{OfCodeInterpreterToolAuto: &responses.ToolCodeInterpreterContainerCodeInterpreterContainerAutoParam{}}
		_, err := respond(t, r, "code-runs=3", "", responses.ToolUnionParam{OfCodeInterpreter: &responses.ToolCodeInterpreterParam{Container: container}})
		return err
	}, perToken(2_500, 15_000, llm.Containers, 30_000_000)},
	"OpenAI's responses run a shell": {"gpt-5.4", func(t *testing.T, r *rig) error {
		environment := responses.FunctionShellToolEnvironmentUnionParam{OfContainerAuto: &responses.ContainerAutoParam{MemoryLimit: "4g"}}
		_, err := respond(t, r, "code-runs=2", "", responses.ToolUnionParam{OfShell: &responses.FunctionShellToolParam{Environment: environment}})
		return err
	}, perToken(2_500, 15_000, llm.Containers, 30_000_000)},
	"OpenAI's containers": {"container", func(t *testing.T, r *rig) error {
		client := r.openAISDK("")
		c, err := client.Containers.New(t.Context(), openai.ContainerNewParams{Name: "mine", MemoryLimit: "16g"})
		if err == nil && c.ID == "" {
			t.Errorf("the SDK sees %+v", c)
		}
		return err
	}, perToken(0, 0, llm.Containers, 30_000_000)},
	"a remix of OpenAI's": {"sora-2", func(t *testing.T, r *rig) error {
		client := r.openAISDK("")
		//lint:ignore SA1019 compatible servers have it
		v, err := client.Videos.New(t.Context(), openai.VideoNewParams{Model: "sora-2", Prompt: "a cat", Seconds: "8"})
		if err != nil {
			return err
		}
		//lint:ignore SA1019 compatible servers have it
		_, err = client.Videos.Remix(t.Context(), v.ID, openai.VideoRemixParams{Prompt: "a dog"})
		return err
	}, perToken(0, 0, llm.VideoSeconds, 100_000_000)},
	"an edit of OpenAI's": {"sora-2", func(t *testing.T, r *rig) error {
		client := r.openAISDK("")
		//lint:ignore SA1019 compatible servers have it
		v, err := client.Videos.New(t.Context(), openai.VideoNewParams{Model: "sora-2", Prompt: "a cat", Seconds: "8"})
		if err != nil {
			return err
		}
		of := openai.VideoEditParamsVideoUnion{OfVideoEditsVideoVideoReferenceInputParam: &openai.VideoEditParamsVideoVideoReferenceInputParam{ID: v.ID}}
		//lint:ignore SA1019 compatible servers have it
		_, err = client.Videos.Edit(t.Context(), openai.VideoEditParams{Prompt: "a dog", Video: of})
		return err
	}, perToken(0, 0, llm.VideoSeconds, 100_000_000)},
	"an extension of OpenAI's": {"sora-2", func(t *testing.T, r *rig) error {
		client := r.openAISDK("")
		//lint:ignore SA1019 compatible servers have it
		v, err := client.Videos.New(t.Context(), openai.VideoNewParams{Model: "sora-2", Prompt: "a cat", Seconds: "8"})
		if err != nil {
			return err
		}
		of := openai.VideoExtendParamsVideoUnion{OfVideoExtendsVideoVideoReferenceInputParam: &openai.VideoExtendParamsVideoVideoReferenceInputParam{ID: v.ID}}
		//lint:ignore SA1019 compatible servers have it
		_, err = client.Videos.Extend(t.Context(), openai.VideoExtendParams{Prompt: "a dog", Seconds: "12", Video: of})
		return err
	}, perToken(0, 0, llm.VideoSeconds, 100_000_000)},
	"OpenAI's training": {"gpt-4o-mini-2024-07-18", func(t *testing.T, r *rig) error {
		client := r.openAISDK("")
		examples := strings.Repeat(`{"messages":[{"role":"user","content":"one and one?"},{"role":"assistant","content":"two"}]}`+"\n", 10)
		f, err := client.Files.New(t.Context(), openai.FileNewParams{File: strings.NewReader(examples), Purpose: openai.FilePurposeFineTune})
		if err != nil {
			return err
		}
		method := openai.FineTuningJobNewParamsMethod{Type: "supervised", Supervised: openai.SupervisedMethodParam{
			Hyperparameters: openai.SupervisedHyperparameters{NEpochs: openai.SupervisedHyperparametersNEpochsUnion{OfInt: openai.Int(4)}},
		}}
		job, err := client.FineTuning.Jobs.New(t.Context(), openai.FineTuningJobNewParams{Model: "gpt-4o-mini-2024-07-18", TrainingFile: f.ID, Method: method})
		for err == nil && job.Status != openai.FineTuningJobStatusSucceeded {
			job, err = client.FineTuning.Jobs.Get(t.Context(), job.ID)
		}
		if err == nil && job.TrainedTokens == 0 {
			t.Errorf("the SDK sees %+v", job)
		}
		return err
	}, perToken(0, 0, llm.TrainedTokens, 3_000)},
	"OpenAI's vector stores": {"vector_store", func(t *testing.T, r *rig) error {
		client := r.openAISDK("")
		upload := func(name string) openai.FileNewParams {
			return openai.FileNewParams{Purpose: openai.FilePurposeAssistants, File: openai.File(strings.NewReader("one and two.\n"), name, "text/plain")}
		}
		newStore := func() string { // an empty one: what a store has before a request costs more shortly before midnight
			store, err := client.VectorStores.New(t.Context(), openai.VectorStoreNewParams{ExpiresAfter: openai.VectorStoreNewParamsExpiresAfter{Days: 7}})
			if err != nil {
				t.Fatal(err)
			}
			return store.ID
		}
		f, err := client.VectorStores.Files.UploadAndPoll(t.Context(), newStore(), upload("a.txt"), 1)
		if err != nil || f.UsageBytes == 0 {
			t.Errorf("the SDK sees %+v, %v", f, err)
		}
		batched := newStore()
		b, err := client.VectorStores.FileBatches.UploadAndPoll(t.Context(), batched, []openai.FileNewParams{upload("b.txt"), upload("c.txt")}, nil, 1)
		if err != nil || b.FileCounts.Completed != 2 {
			t.Errorf("the SDK sees %+v, %v", b, err)
		}
		if _, err := client.VectorStores.FileBatches.ListFiles(t.Context(), batched, b.ID, openai.VectorStoreFileBatchListFilesParams{}); err != nil {
			return err
		}
		_, err = client.VectorStores.Search(t.Context(), newStore(), openai.VectorStoreSearchParams{Query: openai.VectorStoreSearchParamsQueryUnion{OfString: openai.String("two?")}})
		return err
	}, func(t mockprovider.Totals) int64 { return t.Units[llm.ByteDays] / 10 }},
	"OpenAI's responses search files": {"gpt-5.4", func(t *testing.T, r *rig) error {
		client := r.openAISDK("")
		store, err := client.VectorStores.New(t.Context(), openai.VectorStoreNewParams{ExpiresAfter: openai.VectorStoreNewParamsExpiresAfter{Days: 7}})
		if err != nil {
			return err
		}
		_, err = respond(t, r, "file-searches=3", "", responses.ToolUnionParam{OfFileSearch: &responses.FileSearchToolParam{VectorStoreIDs: []string{store.ID}}})
		return err
	}, perToken(2_500, 15_000, llm.FileSearches, 2_500_000)},
	"OpenAI's responses use a computer": {"computer-use-preview", func(t *testing.T, r *rig) error {
		client := r.openAISDK("")
		computer := responses.ToolUnionParam{OfComputerUsePreview: &responses.ComputerUsePreviewToolParam{DisplayWidth: 1024, DisplayHeight: 768, Environment: "browser"}}
		_, err := client.Responses.New(t.Context(), responses.ResponseNewParams{
			Model: "computer-use-preview", MaxOutputTokens: openai.Int(50), Tools: []responses.ToolUnionParam{computer}, Truncation: "auto",
			Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("what is there?")},
		})
		return err
	}, perToken(3_000, 12_000, 0, 0)},
	"a stored prompt of OpenAI's that searches": {"gpt-5.4", func(t *testing.T, r *rig) error {
		client := r.openAISDK("web-searches=2")
		_, err := client.Responses.New(t.Context(), responses.ResponseNewParams{Model: "gpt-5.4", MaxOutputTokens: openai.Int(50), Prompt: responses.ResponsePromptParam{ID: "pmpt_1"}})
		return err
	}, perToken(2_500, 15_000, llm.WebSearches, 10_000_000)},
	"OpenAI's responses go on": {"gpt-5.4", func(t *testing.T, r *rig) error {
		first, err := respond(t, r, "", "")
		if err != nil {
			return err
		}
		_, err = respond(t, r, "input=500", first.ID) // the prompt has what the conversation has had
		return err
	}, perToken(2_500, 15_000, 0, 0)},
	"a batch of images of OpenAI's": {"gpt-image-2", func(t *testing.T, r *rig) error {
		client := r.openAISDK("output=50")
		const call = `{"custom_id":"c","method":"POST","url":"/v1/images/generations","body":{"model":"gpt-image-2","prompt":"a cat","n":2}}`
		file, err := client.Files.New(t.Context(), openai.FileNewParams{File: openai.File(strings.NewReader(call), "batch.jsonl", "application/jsonl"), Purpose: openai.FilePurposeBatch})
		if err != nil {
			return err
		}
		batch, err := client.Batches.New(t.Context(), openai.BatchNewParams{InputFileID: file.ID, Endpoint: openai.BatchNewParamsEndpointV1ImagesGenerations, CompletionWindow: openai.BatchNewParamsCompletionWindow24h})
		if err != nil {
			return err
		}
		if batch, err = client.Batches.Get(t.Context(), batch.ID); err != nil {
			return err
		}
		results, err := client.Files.Content(t.Context(), batch.OutputFileID)
		if err == nil {
			_, err = io.Copy(io.Discard, results.Body)
			results.Body.Close()
		}
		return err
	}, perToken(2_500, 15_000, 0, 0)},
}

// claude asks for a message that may use a tool.
func claude(t *testing.T, r *rig, mock string, tool anthropic.ToolUnionParam) (*anthropic.Message, error) {
	client := r.anthropicSDK(mock)
	return client.Messages.New(t.Context(), anthropic.MessageNewParams{
		Model: "claude-opus-4-5", MaxTokens: 50, Tools: []anthropic.ToolUnionParam{tool},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("what is new?"))},
	})
}

var anthropicRows = map[string]sdkRow{
	"Anthropic runs code": {"claude-opus-4-5", func(t *testing.T, r *rig) error {
		_, err := claude(t, r, "code-runs=3", anthropic.ToolUnionParam{OfCodeExecutionTool20250825: &anthropic.CodeExecutionTool20250825Param{}})
		return err
	}, perToken(5_000, 25_000, llm.Containers, 50_000_000)},
	"Anthropic fetches pages": {"claude-opus-4-5", func(t *testing.T, r *rig) error {
		m, err := claude(t, r, "web-fetches=2", anthropic.ToolUnionParam{OfWebFetchTool20250910: &anthropic.WebFetchTool20250910Param{}})
		if err == nil && m.Usage.ServerToolUse.WebFetchRequests != 2 {
			t.Errorf("the SDK sees %+v", m.Usage)
		}
		return err
	}, perToken(5_000, 25_000, 0, 0)},
	"Anthropic's connector of MCP": {"claude-opus-4-5", func(t *testing.T, r *rig) error {
		client := r.anthropicSDK("")
		_, err := client.Beta.Messages.New(t.Context(), anthropic.BetaMessageNewParams{
			Model: "claude-opus-4-5", MaxTokens: 50, MCPServers: []anthropic.BetaRequestMCPServerURLDefinitionParam{{Name: "mcp", URL: "https://example.com/sse"}},
			Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("what is new?"))},
		})
		return err
	}, perToken(5_000, 25_000, 0, 0)},
	"a batch of Anthropic's that searches": {"claude-opus-4-5", func(t *testing.T, r *rig) error {
		client := r.anthropicSDK("web-searches=3")
		search := anthropic.ToolUnionParam{OfWebSearchTool20250305: &anthropic.WebSearchTool20250305Param{MaxUses: anthropic.Int(5)}}
		batch, err := client.Messages.Batches.New(t.Context(), anthropic.MessageBatchNewParams{Requests: []anthropic.MessageBatchNewParamsRequest{{
			CustomID: "c",
			Params: anthropic.MessageBatchNewParamsRequestParams{
				Model: "claude-opus-4-5", MaxTokens: 50, Tools: []anthropic.ToolUnionParam{search},
				Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("what is new?"))},
			},
		}}})
		if err != nil {
			return err
		}
		if _, err = client.Messages.Batches.Get(t.Context(), batch.ID, anthropic.MessageBatchGetParams{}); err != nil {
			return err
		}
		results := client.Messages.Batches.ResultsStreaming(t.Context(), batch.ID, anthropic.MessageBatchResultsParams{})
		for results.Next() {
		}
		return results.Err()
	}, perToken(2_500, 12_500, llm.WebSearches, 10_000_000)},
}

var geminiRows = map[string]sdkRow{
	"Gemini finds places": {"gemini-3.5-flash", func(t *testing.T, r *rig) error {
		config := &genai.GenerateContentConfig{MaxOutputTokens: 50, Tools: []*genai.Tool{{GoogleMaps: &genai.GoogleMaps{}}}}
		a, err := r.geminiSDK(t, "places=3").Models.GenerateContent(t.Context(), "gemini-3.5-flash", genai.Text("where?"), config)
		if err == nil && (len(a.Candidates[0].GroundingMetadata.GroundingChunks) != 3 || a.Candidates[0].GroundingMetadata.GroundingChunks[0].Maps == nil) {
			t.Errorf("the SDK sees %+v", a.Candidates[0].GroundingMetadata)
		}
		return err
	}, perToken(1_500, 9_000, llm.WebSearches, 14_000_000)},
	"an interaction of Gemini's that searches": {"gemini-3.5-flash", func(t *testing.T, r *rig) error {
		a, err := r.geminiSDK(t, "web-searches=2").Interactions.Create(t.Context(), operations.CreateInteractionRequest{Body: operations.NewCreateInteractionRequestBody(interactions.CreateModelInteraction{
			Model: "gemini-3.5-flash", Input: genai.Ptr(interactions.NewInteractionsInput("what is new?")),
			GenerationConfig: &interactions.GenerationConfig{MaxOutputTokens: genai.Ptr(50)}, Tools: []interactions.Tool{interactions.NewTool(interactions.GoogleSearch{})},
		})})
		if err == nil && a.Interaction.Status != "completed" {
			t.Errorf("the SDK sees %+v", a.Interaction)
		}
		return err
	}, perToken(1_500, 9_000, llm.WebSearches, 14_000_000)},
	"Imagen and tokens that are counted for nothing": {"imagen-4.0-generate-001", func(t *testing.T, r *rig) error {
		client := r.geminiSDK(t, "")
		if _, err := client.Models.CountTokens(t.Context(), "gemini-2.5-flash", genai.Text("what is new?"), nil); err != nil {
			return err
		}
		google, err := genai.NewClient(t.Context(), &genai.ClientConfig{APIKey: r.key, Backend: genai.BackendVertexAI, HTTPOptions: genai.HTTPOptions{BaseURL: r.url + "/vertex"}})
		if err != nil {
			return err
		}
		a, err := google.Models.GenerateImages(t.Context(), "imagen-4.0-generate-001", "a cat", &genai.GenerateImagesConfig{NumberOfImages: 2})
		if err == nil && len(a.GeneratedImages) != 2 {
			t.Errorf("the SDK sees %d images", len(a.GeneratedImages))
		}
		return err
	}, perToken(0, 0, llm.Images, 40_000_000)},
	"a batch of Gemini's with a file": {"gemini-3.5-flash", func(t *testing.T, r *rig) error {
		client := r.geminiSDK(t, "web-searches=3")
		const call = `{"key":"a","request":{"contents":[{"parts":[{"text":"what is new?"}]}],"generationConfig":{"maxOutputTokens":50},"tools":[{"googleSearch":{}}]}}` + "\n"
		file, err := client.Files.Upload(t.Context(), strings.NewReader(call+call), &genai.UploadFileConfig{MIMEType: "application/jsonl"})
		if err != nil {
			return err
		}
		batch, err := client.Batches.Create(t.Context(), "gemini-3.5-flash", &genai.BatchJobSource{FileName: file.Name}, nil)
		if err != nil {
			return err
		}
		if batch, err = client.Batches.Get(t.Context(), batch.Name, nil); err != nil {
			return err
		}
		results, err := client.Files.Download(t.Context(), genai.NewDownloadURIFromFile(&genai.File{Name: batch.Dest.FileName, DownloadURI: batch.Dest.FileName}), nil)
		if err == nil && strings.Count(string(results), "usageMetadata") != 2 {
			t.Errorf("the SDK sees %s", results)
		}
		return err
	}, perToken(750, 4_500, llm.WebSearches, 14_000_000)},
	"a batch of Gemini's that searches": {"gemini-3.5-flash", func(t *testing.T, r *rig) error {
		client := r.geminiSDK(t, "web-searches=3")
		call := &genai.InlinedRequest{Contents: genai.Text("what is new?"), Config: &genai.GenerateContentConfig{MaxOutputTokens: 50, Tools: []*genai.Tool{{GoogleSearch: &genai.GoogleSearch{}}}}}
		batch, err := client.Batches.Create(t.Context(), "gemini-3.5-flash", &genai.BatchJobSource{InlinedRequests: []*genai.InlinedRequest{call, call}}, nil)
		if err != nil {
			return err
		}
		if batch, err = client.Batches.Get(t.Context(), batch.Name, nil); err == nil && batch.State != genai.JobStateSucceeded {
			t.Errorf("the SDK sees %+v", batch)
		}
		return err
	}, perToken(750, 4_500, llm.WebSearches, 14_000_000)},
}
