package llm

import (
	"strings"
	"testing"
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
	if err != nil || r.Model != "dall-e-2" || r.Units != (Units{Images: 3}) || r.Variant != "256x256" || !r.Form || r.Wrong != "" || r.bound.images != 1 {
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
	if _, err := (Endpoint{Provider: OpenAI, API: Chat}).ReadAs(kind, []byte(model+end)); err == nil {
		t.Error("a chat in a form")
	}
}
