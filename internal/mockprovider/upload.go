package mockprovider

import (
	"fmt"
	"io"
	"net/http"
)

// uploadToGoogle takes a file in Google's two steps: the first one answers with the address to which the file is to be
// sent, and whoever knows that address may send it.
func (e *exchange) uploadToGoogle(command string) *failure {
	b := &e.server.batches
	e.call.Provider = "gemini"
	if command == "start" {
		b.count++
		e.w.Header().Set("X-Goog-Upload-Status", "active")
		e.w.Header().Set("X-Goog-Upload-Url", fmt.Sprintf("http://%s%s?upload_id=mock%d&upload_protocol=resumable", e.r.Host, e.r.URL.Path, b.count))
		e.json(http.StatusOK, []byte("{}"))
		return nil
	}
	if e.r.URL.Query().Get("upload_id") == "" {
		return &failure{status: http.StatusBadRequest, message: "the upload was not started"}
	}
	content, err := io.ReadAll(io.LimitReader(e.r.Body, maxBody))
	if err != nil {
		return &failure{status: http.StatusBadRequest, message: err.Error()}
	}
	id := b.add(&file{content: content, at: e.now})
	e.w.Header().Set("X-Goog-Upload-Status", "final")
	e.json(http.StatusOK, encode(object{"file": object{"name": "files/" + id, "sizeBytes": fmt.Sprint(len(content)), "state": "ACTIVE"}}))
	return nil
}
