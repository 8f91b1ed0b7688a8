package dialect

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	pixels "image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

var (
	ofOpenAI    = Endpoint{Provider: OpenAI, API: Chat}
	ofAnthropic = Endpoint{Provider: Anthropic, API: Messages}
	ofGemini    = Endpoint{Provider: Gemini, API: Generate}
)

// noise returns bytes that do not repeat, behind a given beginning.
func noise(size int, beginning string) []byte {
	source := rand.NewChaCha8([32]byte{1})
	b := make([]byte, size)
	source.Read(b)
	copy(b, beginning)
	return b
}

// picture returns an image from a real encoder.
func picture(t testing.TB, format string, width, height int) []byte {
	t.Helper()
	m := pixels.NewGray(pixels.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = byte(i * i >> 3)
	}
	var b bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, m)
	case "gif":
		err = gif.Encode(&b, m, nil)
	case "jpeg":
		err = jpeg.Encode(&b, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withSegment inserts a segment of so many bytes before the others of a JPEG.
func withSegment(jpeg []byte, marker byte, size int) []byte {
	segment := append([]byte{0xff, marker, byte(size >> 8), byte(size)}, make([]byte, size-2)...)
	return slices.Concat(jpeg[:2], segment, jpeg[2:])
}

// withEXIF inserts as many bytes of EXIF before the rest of a JPEG as cameras do.
func withEXIF(jpeg []byte, size int) []byte { return withSegment(jpeg, 0xe1, size) }

// webp returns the beginning of a WebP file of a size, and noise.
func webp(format string, width, height int) []byte {
	b := noise(1000, "RIFF\x00\x00\x00\x00WEBP"+format)
	switch format {
	case "VP8X":
		copy(b[24:], []byte{byte(width - 1), byte((width - 1) >> 8), 0, byte(height - 1), byte((height - 1) >> 8), 0})
	case "VP8L":
		bits := (width - 1) | (height-1)<<14
		copy(b[20:], []byte{0x2f, byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24)})
	case "VP8 ":
		copy(b[23:], []byte{0x9d, 0x01, 0x2a, byte(width), byte(width >> 8), byte(height), byte(height >> 8)})
	}
	return b
}

func TestDimensions(t *testing.T) {
	for _, size := range [][2]int{{300, 200}, {37, 1025}} {
		width, height := size[0], size[1]
		for name, data := range map[string][]byte{
			"PNG":                 picture(t, "png", width, height),
			"GIF":                 picture(t, "gif", width, height),
			"JPEG":                picture(t, "jpeg", width, height),
			"JPEG with EXIF":      withEXIF(picture(t, "jpeg", width, height), 50_000),
			"JPEG with much EXIF": withEXIF(withEXIF(picture(t, "jpeg", width, height), 65_000), 65_000),
			"JPEG, tables first":  withSegment(picture(t, "jpeg", width, height), 0xc4, 50),
			"JPEG, filled up":     slices.Concat([]byte("\xff\xd8\xff\xff\xff"), picture(t, "jpeg", width, height)[2:]),
			"WebP":                webp("VP8 ", width, height),
			"WebP, lossless":      webp("VP8L", width, height),
			"WebP, extended":      webp("VP8X", width, height),
		} {
			for encoding, encoded := range map[string]string{
				"standard": base64.StdEncoding.EncodeToString(data),
				"for URLs": base64.RawURLEncoding.EncodeToString(data),
			} {
				if w, h := blob(encoded).dimensions(); w != width || h != height {
					t.Errorf("%s in base64 %s is %d by %d: want %d by %d", name, encoding, w, h, width, height)
				}
			}
			encoded := base64.StdEncoding.EncodeToString(data[:100])
			for n := range encoded { // cut anywhere, it does no harm
				blob(encoded[:n]).dimensions()
			}
		}
	}
}

// An image of many segments does not cost much time.
func TestDimensionsFarAway(t *testing.T) {
	data := picture(t, "jpeg", 300, 200)
	for range 100 {
		data = withSegment(data, 0xe1, 2)
	}
	if width, height := blob(base64.StdEncoding.EncodeToString(data)).dimensions(); width != 0 || height != 0 {
		t.Errorf("it is %d by %d after 100 segments", width, height)
	}
}

func TestImageTokens(t *testing.T) {
	for _, c := range []struct {
		width, height             int
		openAI, anthropic, gemini int
	}{
		{1, 1, 85 + 170, 1, 258},
		{384, 384, 85 + 170, 197, 258},
		{512, 512, 85 + 170, 350, 258},
		{1024, 1024, 85 + 4*170, 1399, 4 * 258},
		{2048, 4096, 85 + 6*170, 1600, 8 * 258}, // 3072 high for Gemini: 2 by 4 tiles
		{4096, 8192, 85 + 6*170, 1600, 8 * 258},
		{1000, 20, 85 + 2*170, 27, 2 * 258},
		{65535, 1, 85 + 4*170, 11, 4 * 258},
		{1 << 31, 1 << 31, 85 + 4*170, 1600, 16 * 258},
		{0, 10, openAIImages.unknown, anthropicMaxImage, geminiUnknownImage},
	} {
		got := [3]int{ofOpenAI.image(c.width, c.height), ofAnthropic.image(c.width, c.height), ofGemini.image(c.width, c.height)}
		if want := [3]int{c.openAI, c.anthropic, c.gemini}; got != want {
			t.Errorf("%d by %d costs %d: want %d", c.width, c.height, got, want)
		}
	}
}

// TestMedia puts images and files into bodies as SDKs do.
func TestMedia(t *testing.T) {
	const message = tokensPerMessage + tokensPerReply
	image := base64.StdEncoding.EncodeToString(picture(t, "png", 1024, 1024))
	encode := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	for _, c := range []struct {
		name string
		to   Endpoint
		body string
		want int
	}{
		{"a data URI", ofOpenAI, `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}}]}]}`, 765 + message},
		{"at a glance", ofOpenAI, `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `","detail":"low"}}]}]}`, 85 + message},
		{"of responses", Endpoint{Provider: OpenAI, API: Responses}, `{"input":[{"content":[{"detail":"high","type":"input_image","image_url":"data:image/png;base64,` + image + `"}]}]}`, 765 + message},
		{"small", ofOpenAI, `{"messages":[{"content":[{"image_url":{"url":"data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="}}]}]}`, 255 + message},
		{"Anthropic", ofAnthropic, `{"messages":[{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}}]}]}`, 1399 + message},
		{"Anthropic, data first", ofAnthropic, `{"messages":[{"content":[{"source":{"data":"` + image + `","media_type":"image/png","type":"base64"},"type":"image"}]}]}`, 1399 + message},
		{"Gemini", ofGemini, `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + image + `"}}]}]}`, 4*258 + message},
		{"Gemini through OpenAI's API", Endpoint{Provider: Gemini, API: Chat}, `{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,` + image + `"}}]}]}`, 4*258 + message},
		{"Ollama chat", Endpoint{Provider: Ollama, API: OllamaChat}, `{"messages":[{"content":"abcd","images":["` + image + `"]}]}`, 765 + 1 + message},
		{"Ollama generate", Endpoint{Provider: Ollama, API: OllamaGenerate}, `{"images":["` + image + `","` + image + `"]}`, 2 * 765},
		{"in a result of a tool", ofAnthropic, `{"messages":[{"content":[{"type":"tool_result","content":[{"type":"image","source":{"data":"` + image + `"}}]}]}]}`, 1399 + message},
		{"slashes escaped", ofOpenAI, `{"messages":[{"content":[{"image_url":{"url":"data:image\/png;base64,` + strings.ReplaceAll(image, "/", `\/`) + `"}}]}]}`, 765 + message},
		{"slashes escaped in a JPEG", ofOpenAI, `{"messages":[{"content":"` + strings.ReplaceAll(encode(picture(t, "jpeg", 1024, 1024)), "/", `\/`) + `"}]}`, 765 + message},
		{"line breaks", ofAnthropic, `{"messages":[{"content":"` + inLines(image) + `"}]}`, 1399 + message},
		{"an image of which no size is known", ofOpenAI, `{"messages":[{"content":"data:image/heic;base64,` + encode(noise(5000, "\x00")) + `"}]}`, openAIImages.unknown + message},
		{"a PDF", ofAnthropic, `{"messages":[{"content":[{"type":"document","source":{"data":"` + encode(noise(300_000, "%PDF-1.7\n")) + `"}}]}]}`, 6000 + message},
		{"a PDF of a page", ofAnthropic, `{"messages":[{"content":[{"type":"document","source":{"data":"` + encode(noise(3000, "%PDF-1.7\n")) + `"}}]}]}`, 1500 + message},
		{"a WAV", ofOpenAI, `{"messages":[{"content":[{"type":"input_audio","input_audio":{"data":"` + encode(noise(30_000, "RIFF\x00\x00\x00\x00WAVEfmt ")) + `","format":"wav"}}]}]}`, 61 + message},
		{"an MP3", ofGemini, `{"contents":[{"parts":[{"inlineData":{"data":"` + encode(noise(30_000, "ID3")) + `"}}]}]}`, 61 + message},
		{"an MP4", ofGemini, `{"contents":[{"parts":[{"inlineData":{"data":"` + encode(noise(30_000, "\x00\x00\x00\x20ftypisom")) + `"}}]}]}`, 61 + message},
		{"sound without a head", ofGemini, `{"contents":[{"parts":[{"inlineData":{"mimeType":"audio/pcm","data":"` + encode(noise(30_000, "\x01\x02")) + `"}}]}]}`, 601 + message},
		{"sound that is named", ofOpenAI, `{"messages":[{"content":"data:audio/pcm;base64,` + encode(noise(30_000, "\x01\x02")) + `"}]}`, 61 + message},
		{"a text as a file", ofOpenAI, `{"messages":[{"content":[{"type":"file","file":{"file_data":"data:text/csv;base64,` + encode([]byte(strings.Repeat("a,b\n", 300))) + `"}}]}]}`, 301 + message},
		{"an unknown file", ofOpenAI, `{"messages":[{"content":[{"type":"file","file":{"file_data":"data:application/zip;base64,` + encode(noise(30_000, "PK\x03\x04")) + `"}}]}]}`, 601 + message},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !json.Valid([]byte(c.body)) {
				t.Fatal("no JSON")
			}
			r, err := c.to.Read([]byte(c.body))
			if err != nil || r.Prompt != c.want {
				t.Errorf("it is %d tokens, %v: want %d", r.Prompt, err, c.want)
			}
			r.CountWith([]byte(c.body), func(_, text string) int { return (len(text) + 3) / 4 })
			if r.Prompt != c.want {
				t.Errorf("it is %d tokens when its texts are counted: want %d", r.Prompt, c.want)
			}
		})
	}
}

// inLines breaks a text into lines as MIME does.
func inLines(s string) string {
	var b strings.Builder
	for ; len(s) > 76; s = s[76:] {
		b.WriteString(s[:76] + `\n`)
	}
	return b.String() + s
}

// A file of 10 MB is not millions of tokens, whatever its type.
func TestLargeMedia(t *testing.T) {
	for _, beginning := range []string{"\x89PNG\r\n\x1a\n", "\xff\xd8\xff\xe0", "GIF89a", "RIFF\x00\x00\x00\x00WEBPVP8 ", "%PDF-1.7", "ID3", "\x1a\x45\xdf\xa3", "OggS", "fLaC", "?"} {
		data := strings.Repeat(base64.StdEncoding.EncodeToString(noise(3<<10, beginning)), testkit.Rounds(2, 10)<<10/3)
		body := fmt.Appendf(nil, `{"messages":[{"content":[{"source":{"data":"%s"}}]}]}`, data)
		for _, e := range []Endpoint{ofOpenAI, ofAnthropic, ofGemini} {
			r, err := e.Read(body)
			if err != nil || r.Prompt > 250_000 || r.Prompt < 85 {
				t.Errorf("megabytes that begin with %q are %d tokens of %s, %v", beginning, r.Prompt, e.Provider, err)
			}
		}
	}
}

// FuzzDimensions compares the dimensions of images with the decoders of the standard library.
func FuzzDimensions(f *testing.F) {
	for _, format := range []string{"png", "gif", "jpeg"} {
		f.Add(picture(f, format, 30, 20))
	}
	f.Add(webp("VP8X", 30, 20))
	f.Fuzz(func(t *testing.T, data []byte) {
		width, height := blob(base64.StdEncoding.EncodeToString(data)).dimensions()
		if width < 0 || height < 0 {
			t.Fatalf("it is %d by %d", width, height)
		}
		config, _, err := pixels.DecodeConfig(bytes.NewReader(data))
		if err != nil || width == 0 || height == 0 {
			return
		}
		if config.Width != width || config.Height != height {
			t.Fatalf("it is %d by %d: want %d by %d", width, height, config.Width, config.Height)
		}
	})
}
