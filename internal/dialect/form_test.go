package dialect

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

// A form is read like the object of its fields. What servers may read in different ways is refused.
func TestForms(t *testing.T) {
	const kind = `multipart/form-data; boundary=b`
	part := func(header, value string) string {
		return "--b\r\nContent-Disposition: form-data; " + header + "\r\n\r\n" + value + "\r\n"
	}
	model, file, end := part(`name="model"`, "dall-e-2"), part(`name="image[]"; filename="a.png"`, "png\r\n--c"), "--b--\r\n"
	e := Endpoint{Provider: OpenAI, API: ImageGeneration}
	r, err := e.ReadAs(kind, []byte(model+file+part(`name="n"`, "3")+part(`name="size"`, "256x256")+end))
	if err != nil || r.Model != "dall-e-2" || r.Units != (llm.Units{llm.Images: 3}) || r.Variant != "256x256" || !r.Form || r.Wrong != "" || r.bound.images != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if path, body := r.Rename("/v1/images/edits", []byte("x"), "other"); path != "/v1/images/edits" || string(body) != "x" {
		t.Errorf("renamed: %s %s", path, body)
	}
	for name, body := range map[string]string{
		"no end":           model + file,
		"text before":      "x\r\n" + model + end,
		"text behind":      model + end + "x",
		"another boundary": strings.ReplaceAll(model+end, "--b", "--c"),
		"no name":          part("", "x") + end,
		"a name in UTF-8":  part(`name*=UTF-8''model`, "x") + end,
		"no form-data":     "--b\r\nContent-Disposition: attachment; name=\"model\"\r\n\r\nx\r\n" + end,
		"encoded":          "--b\r\nContent-Disposition: form-data; name=\"model\"\r\nContent-Transfer-Encoding: base64\r\n\r\neA==\r\n" + end,
		"too many parts":   strings.Repeat(part(`name="x"`, "1"), maxFormParts+1) + end,
		"a long field":     part(`name="prompt"`, strings.Repeat("x", maxFormField+1)) + end,
		"a count as a file, which some servers take for a text": model + part(`name="n"; filename*=UTF-8''x`, "9") + end,
		"a model as a file": model + part(`name="model"; filename=""`, "dall-e-3") + end,
		"a boundary behind a bare newline, where some servers cut": model + part(`name="prompt"`, "x\n--b\nContent-Disposition: form-data; name=n\n\n9") + end,
	} {
		if r, err := e.ReadAs(kind, []byte(body)); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for name, body := range map[string]string{
		"two models":   model + part(`name="model"`, "dall-e-3") + end,
		"two counts":   model + part(`name="n"`, "1") + part(`name="n"`, "9") + end,
		"a word for n": model + part(`name="n"`, "nine") + end,
		"its case":     model + part(`name="N"`, "9") + end,
	} {
		if r, err := e.ReadAs(kind, []byte(body)); err != nil || !r.Ambiguous && r.Wrong == "" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	for _, kind := range []string{
		`multipart/form-data; boundary=a; boundary*=utf-8''b`, `multipart/form-data; boundary*0=b`, `multipart/mixed; boundary=b`, ` Multipart/Form-Data; boundary="b`,
	} {
		if r, err := e.ReadAs(kind, []byte(model+end)); err == nil {
			t.Errorf("%s: %+v", kind, r)
		}
	}
	object := []byte("{\"model\":\"dall-e-2\",\"prompt\":\"\r\n--b\r\nContent-Disposition: form-data; name=n\r\n\r\n9\r\n--b--\r\n\"}")
	if r, err := e.ReadAs(`multipart/form-data; boundary=b; boundary=c`, object); err == nil {
		t.Errorf("an object that some servers take for a form: %+v", r)
	}
	if _, err := (Endpoint{Provider: OpenAI, API: Chat}).ReadAs(kind, []byte(model+end)); err == nil {
		t.Error("a chat in a form")
	}
}

// The files of a form are parts of its body: a large one is in memory once.
func TestFilesOfFormsAreNotCopied(t *testing.T) {
	body := []byte("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nsound\r\n--c\r\n--b \r\nContent-Disposition: form-data; name=\"image\"; filename=\"b\"\r\n\r\n\r\n--b--\r\n")
	f, err := readForm(body, "b")
	if err != nil || len(f.files) != 2 || string(f.files[0].content) != "sound\r\n--c" || len(f.files[1].content) != 0 {
		t.Fatalf("%q, %v", f.files, err)
	}
	if at := strings.Index(string(body), "sound"); &f.files[0].content[0] != &body[at] {
		t.Error("a file is a copy")
	}
	if f, err := readForm([]byte(strings.ReplaceAll(string(body), "\r\n", "\n")), "b"); err == nil {
		t.Errorf("lines that servers end in different ways: %q", f.files)
	}
}
