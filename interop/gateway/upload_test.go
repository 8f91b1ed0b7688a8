package gateway_test

import (
	"strings"
	"testing"

	"google.golang.org/genai"
)

// Gemini's SDK uploads a file through the gateway, in both of its steps.
func TestUploadOfGemini(t *testing.T) {
	r := newRig(t, with(ample))
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: r.key, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: r.url + "/gemini"},
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := client.Files.Upload(t.Context(), strings.NewReader("Hello"), &genai.UploadFileConfig{MIMEType: "text/plain"})
	if err != nil || file.SizeBytes == nil || *file.SizeBytes != 5 {
		t.Errorf("%+v, %v", file, err)
	}
	r.idle(t)
	if all := r.Recent("", 0, 10); len(all) != 2 {
		t.Errorf("%d requests went through the gateway; want 2", len(all))
	}
}
