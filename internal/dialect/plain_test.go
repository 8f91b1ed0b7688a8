package dialect

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

// plainMP4 returns an MP4 file with size bytes of uncompressed samples at the given rate; units is the time scale of its
// track.
func plainMP4(codec string, rate, units uint32, size int) []byte {
	be := binary.BigEndian
	entry := append(make([]byte, 24), be.AppendUint32(nil, rate<<16)...)
	b := box("ftyp", []byte("M4A \x00\x00\x00\x00"))
	b = append(b, box("mdhd", make([]byte, 12), be.AppendUint32(nil, units), make([]byte, 8))...)
	b = append(b, box("stsd", []byte{0, 0, 0, 0, 0, 0, 0, 1}, box(codec, entry))...)
	b = append(b, box("stsz", []byte{0, 0, 0, 0, 0, 0, 0, 1}, be.AppendUint32(nil, uint32(size)))...)
	return append(b, box("mdat", make([]byte, size))...)
}

// plainWebM returns a file with blocks of a hundred bytes, of a codec, at a rate.
func plainWebM(codec string, rate float32, blocks int) []byte {
	b := []byte("\x1a\x45\xdf\xa3\x84webm\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff\x16\x54\xae\x6b\xff\xae\xff\x86")
	b = append(append(b, 0x80|byte(len(codec))), codec...)
	b = binary.BigEndian.AppendUint32(append(b, "\xe1\x86\xb5\x84"...), math.Float32bits(rate))
	b = append(b, 0x1f, 0x43, 0xb6, 0x75, 0xff)
	for range blocks {
		b = append(append(b, 0xa3, 0x80|104, 0x81, 0, 0, 0), make([]byte, 100)...)
	}
	return b
}

// Samples without a codec are as long as their rate says, and codecs that choose their own rate can be of any length.
func TestPlainSamples(t *testing.T) {
	const any = int64(maxAudio / audioSecond)
	withRate := func(rate string) []byte { // a WebM with another rate before its own
		return bytes.Replace(plainWebM("A_PCM/INT/LIT", 44100, 800), []byte("\xe1\x86"), append([]byte{0xe1, 0x86 + byte(len(rate))}, rate...), 1)
	}
	for name, c := range map[string]struct {
		file []byte
		want int64
	}{
		"MP4":                                {plainMP4("sowt", 8000, 8000, 80_000), 11},
		"MP4, a sample a second":             {plainMP4("sowt", 1, 8000, 80_000), 80_128},
		"MP4 whose track counts slowly":      {plainMP4("twos", 8000, 1, 80_000), 80_128},
		"MP4 without a rate":                 {plainMP4("lpcm", 0, 8000, 80_000), any},
		"MP4 with a codec of any rate":       {plainMP4("alac", 44100, 44100, 80_000), any},
		"MP4 whose table repeats the frames": {plainMP4("Opus", 48000, 48000, 0), 16},
		"WebM":                               {plainWebM("A_PCM/INT/LIT", 8000, 800), 10},
		"WebM, a sample a second":            {plainWebM("A_PCM/INT/LIT", 1, 800), 80_000},
		"WebM without a rate":                {plainWebM("A_PCM/INT/LIT", 0.5, 800), any},
		"WebM with a codec of any rate":      {plainWebM("A_ALAC", 44100, 800), any},
		"WebM with two rates":                {withRate("\xb5\x84\x3f\x00\x00\x00"), any},
		"WebM with another rate of output":   {withRate("\x78\xb5\x84\x3f\x80\x00\x00"), any},
	} {
		if got := mostSeconds(c.file); got != c.want {
			t.Errorf("%s: %d seconds, want %d", name, got, c.want)
		}
	}
	edits := string(bytes.Repeat([]byte("elst"), 262_154)) + "\x00\x00\x00\x00\x00\x00\x00\x0b" // as many samples as often as this were -4 in 64 bits
	for _, codec := range []string{"Opus", "sowt"} {
		lies := append(plainMP4(codec, 48000, 48000, 0), edits...)
		binary.BigEndian.PutUint32(lies[bytes.Index(lies, []byte("stsz"))+12:], math.MaxUint32)
		if got := mostSeconds(lies); got != any {
			t.Errorf("%s: a table that counts all samples there can be: %d seconds", codec, got)
		}
	}
}

// What a tool runs in costs as much as its size, however a request hides it, and nothing if the provider makes nothing.
func TestContainerSizes(t *testing.T) {
	for tool, want := range map[string]int64{
		`{"type":"code_interpreter"}`: 1, `{"type":"code_interpreter","container":"cntr_1"}`: 0,
		`{"type":"code_interpreter","container":{"type":"auto","memory_limit":"16g"}}`:                           16,
		`{"type":"code_interpreter","container":{"type":"auto","memory_limit":"64\u0067"}}`:                      64,
		`{"type":"code_interpreter","container":{"type":"auto","memory_limit":"4g","memory_limit":"1g"}}`:        4,
		`{"type":"code_interpreter","container":{"type":"auto","memory_limit":"128g"}}`:                          64,
		`{"type":"code_interpreter","container":{"type":"auto","memory_limit" : 64}}`:                            64,
		`{"type":"code_interpreter","container":{"type":"auto","memory_limit":null}}`:                            1,
		`{"type":"code_interpreter","container":{"type":"auto","memory_limit": "1g"}}`:                           1,
		`{"type":"shell","environment":{"type":"container_auto","memory_limit":"4G"}}`:                           64,
		`{"type":"code_interpreter","container":{"type":"auto","memory_limit":"4g"},"container":"cntr_1"}`:       4,
		`{"container":{"type":"auto","memory_limit":"64g"},"type":"code_interpreter"}`:                           64,
		`{"type":"code_interpreter","container":{"type":"auto","network_policy":{"allowed_domains":["local"]}}}`: 1,
		`{"type":"shell"}`: 1, `{"type":"shell","environment":{"type":"local"}}`: 0, `{"type":"local_shell"}`: 0,
		`{"type":"shell","environment":{"type":"container_reference","container_id":"cntr_1"}}`:             0,
		`{"type":"shell","environment":{"type":"container_auto","memory_limit":"4g","file_ids":["local"]}}`: 4,
		`{"type":"shell","environment":{"type":"container_auto"},"environment":{"type":"local"}}`:           1,
		`{"type":"shell","type":"function","environment":{"type":"container_auto","memory_limit":"64g"}}`:   64,
	} {
		r, err := Endpoint{Provider: OpenAI, API: Responses}.Read([]byte(`{"model":"gpt-5.4","input":"x","tools":[` + tool + `]}`))
		if err != nil || r.Units[llm.Containers] != want {
			t.Errorf("%s: %d containers, want %d (%v)", tool, r.Units[llm.Containers], want, err)
		}
	}
}

// A shape has what is to be reserved for a request, whichever model it is for, and the larger of two no less than either.
func TestShape(t *testing.T) {
	read := func(body string) Shape {
		r, err := Endpoint{Provider: Gemini, API: Generate}.Read([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return r.Shape()
	}
	short := read(`{"contents":[{"parts":[{"text":"Hello"}]}],"generationConfig":{"maxOutputTokens":100},"tools":[{"googleSearch":{}}]}`)
	long := read(`{"contents":[{"parts":[{"text":"Hello, who is there, and what is new?"}]}],"generationConfig":{"candidateCount":2}}`)
	m := llm.Maxima{Context: 10_000, Output: 1000}
	for _, model := range []string{"gemini-2.5-flash", "gemini-3.5-flash", "gemini-2.5-flash-image"} {
		e := Endpoint{Provider: Gemini, API: Generate, Model: model}
		for _, body := range []string{
			`{"contents":[{"parts":[{"text":"Hello"}]}],"generationConfig":{"maxOutputTokens":100},"tools":[{"googleSearch":{}}]}`,
			`{"contents":[{"parts":[{"text":"Hello, who is there, and what is new?"}]}],"generationConfig":{"candidateCount":2}}`,
			`{"contents":[{"parts":[{"fileData":{"fileUri":"files/a"}}]}]}`, `{"contents":[],"cachedContent":"cachedContents/a","tools":[{"googleMaps":{}}]}`,
		} {
			whole, _ := e.Read([]byte(body))
			again := read(body).Request(e)
			wantInput, wantOutput, _ := whole.Most(m)
			input, output, ok := again.Most(m)
			if !ok || input != wantInput || output != wantOutput || again.Units != whole.Units || again.SearchesOnce != whole.SearchesOnce || again.Variant != whole.Variant || again.Prompt != whole.Prompt {
				t.Errorf("%s of %s: %d and %d, want %d and %d; %+v", body, model, input, output, wantInput, wantOutput, again)
			}
		}
		both := short.Larger(long).Request(e)
		input, output, _ := both.Most(m)
		for _, s := range []Shape{short, long} {
			r := s.Request(e)
			if i, o, _ := r.Most(m); i > input || o > output || r.Units[llm.WebSearches] > both.Units[llm.WebSearches] || r.Units[llm.Images] > both.Units[llm.Images] {
				t.Errorf("%s: %+v is larger than %+v", model, r, both)
			}
		}
	}
}
