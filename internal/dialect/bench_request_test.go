package dialect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// chatBody returns the body of a chat of about so many bytes, with line breaks and quotes in its
// texts.
func chatBody(size int) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"gpt-4o","stream":true,"max_tokens":512,"temperature":0.2,"messages":[{"role":"system","content":"You are a helpful assistant."}`)
	line := "He said \"it was the best of times\",\nand that nobody would know it from the worst of them.\n"
	for i := 0; b.Len() < size; i++ {
		lines := min(1+size/800, 400)
		content, _ := json.Marshal(strings.Repeat(line, lines))
		fmt.Fprintf(&b, `,{"role":"%s","content":%s}`, [2]string{"user", "assistant"}[i%2], content)
	}
	b.WriteString(`],"metadata":{"trace":"5f3a","tags":["a","b"]}}`)
	return []byte(b.String())
}

// BenchmarkRead compares Read with encoding/json, which decodes a part of the body.
func BenchmarkRead(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10, 10 << 20} {
		body := chatBody(size)
		b.Run(fmt.Sprintf("%dKB/read", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (Endpoint{Provider: OpenAI, API: Chat}).Read(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%dKB/json", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				var v struct {
					Model     string
					Stream    bool
					MaxTokens int `json:"max_tokens"`
					Messages  []struct{ Role, Content string }
				}
				if err := json.Unmarshal(body, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
