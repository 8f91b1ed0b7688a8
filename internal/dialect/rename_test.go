package dialect

import (
	"net/url"
	"testing"
)

func TestRename(t *testing.T) {
	for _, c := range []struct{ path, body, wantPath, wantBody string }{
		{"/v1/chat/completions", `{"model":"best","n":1}`, "/v1/chat/completions", `{"model":"gpt \"6\"","n":1}`},
		{"/v1/messages", "\ufeff{ \"x\": {\"model\":\"best\"}, \"model\" : \"best\" }", "/v1/messages", "\ufeff{ \"x\": {\"model\":\"best\"}, \"model\" : \"gpt \\\"6\\\"\" }"},
		{"/v1/chat/completions", `{"model":"b\u0065st"}`, "/v1/chat/completions", `{"model":"gpt \"6\""}`},
		{"/v1beta/models/best:generateContent", `{"model":"best"}`, `/v1beta/models/gpt "6":generateContent`, `{"model":"gpt \"6\""}`},
		{"/v1/best:x/models/best:streamGenerateContent", `{}`, `/v1/best:x/models/gpt "6":streamGenerateContent`, `{}`},
		{"/engines/best/completions", `{"model":"best"}`, `/engines/gpt "6"/completions`, `{"model":"gpt \"6\""}`},
		{"/v1/Engines/best/embeddings/", `{}`, `/v1/Engines/gpt "6"/embeddings/`, `{}`},
		{"/openai/Deployments/best/chat/completions", `{}`, `/openai/Deployments/gpt "6"/chat/completions`, `{}`},
		{"/openai/deployments/best/chat/completions", `{"model":"best"}`, `/openai/deployments/gpt "6"/chat/completions`, `{"model":"best"}`},
	} {
		endpoint, ok := Recognize("POST", &url.URL{Path: c.path})
		if !ok {
			t.Fatalf("%s is not recognized", c.path)
		}
		request, err := endpoint.Read([]byte(c.body))
		if err != nil || request.Model != "best" {
			t.Fatalf("%s: %+v, %v", c.path, request, err)
		}
		path, body := request.Rename(c.path, []byte(c.body), `gpt "6"`)
		if path != c.wantPath || string(body) != c.wantBody {
			t.Errorf("%s %s: %s %s", c.path, c.body, path, body)
		}
		again, _ := Recognize("POST", &url.URL{Path: path})
		if read, err := again.Read(body); err != nil || read.Model != `gpt "6"` {
			t.Errorf("%s %s: read as %+v, %v", path, body, read, err)
		}
	}
}

// A body is ambiguous if a server could read another model from it.
func TestAmbiguous(t *testing.T) {
	for body, want := range map[string]bool{
		`{"model":"a"}`:                   false,
		`{"model":"a","model":"a"}`:       false,
		`{"model":"a","model":"b"}`:       true,
		`{"model":"a","Model":"a"}`:       true,
		`{"MODEL":"a"}`:                   true,
		`{"model":"a","x":{"model":"b"}}`: false,
		`{"model":7,"model":"a"}`:         true,
	} {
		if r, err := (Endpoint{API: Chat}).Read([]byte(body)); err != nil || r.Ambiguous != want {
			t.Errorf("%s: %v, %v", body, r.Ambiguous, err)
		}
	}
}
