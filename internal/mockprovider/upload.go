package mockprovider

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
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
	upload := e.r.URL.Query().Get("upload_id")
	if b.pieces == nil {
		b.pieces = map[string][]byte{}
	}
	if offset := e.r.Header.Get("X-Goog-Upload-Offset"); offset != fmt.Sprint(len(b.pieces[upload])) {
		return &failure{status: http.StatusBadRequest, message: "the offset " + offset + " is wrong"}
	}
	b.pieces[upload] = append(b.pieces[upload], content...)
	if !strings.Contains(command, "finalize") {
		e.w.Header().Set("X-Goog-Upload-Status", "active")
		e.json(http.StatusOK, []byte("{}"))
		return nil
	}
	f := &file{content: b.pieces[upload], at: e.now}
	delete(b.pieces, upload)
	id := b.add(f)
	e.w.Header().Set("X-Goog-Upload-Status", "final")
	e.json(http.StatusOK, encode(object{"file": f.atGoogle(id)}))
	return nil
}

// atGoogle returns what Gemini says of a file.
func (f *file) atGoogle(id string) object {
	sum := sha256.Sum256(f.content)
	return object{
		"name": "files/" + id, "sizeBytes": fmt.Sprint(len(f.content)), "state": "ACTIVE", "createTime": f.at.UTC().Format(time.RFC3339),
		"sha256Hash": base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(sum[:]))),
	}
}

// serveGoogleFile answers with what there is to know of a file of Gemini's, or with its content if it is not one that a
// client has uploaded.
func (e *exchange) serveGoogleFile(name string) *failure {
	e.call.Provider = "gemini"
	id, download := strings.CutSuffix(name, ":download")
	f := e.server.batches.files[id]
	switch {
	case f == nil:
		return missing(id)
	case !download:
		e.json(http.StatusOK, encode(f.atGoogle(id)))
	case f.purpose != "batch_output":
		return &failure{status: http.StatusBadRequest, message: "a file that was uploaded cannot be downloaded"}
	default:
		e.w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(e.w, e.r, "", f.at, bytes.NewReader(f.content))
	}
	return nil
}
