package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// body is a request of OpenAI's chat API.
type body struct {
	name  string
	text  []byte
	image bool // its content is in parts, and most of it is an image
}

const (
	bodyModel  = "gpt-4o"
	bodyOutput = 1024 // max_tokens
)

// bodies are small, large, and as large as they get. shrink is for tests.
func bodies(shrink func(int) int) []body {
	sized := func(n int) int { return max(shrink(n), 1<<10) }
	return []body{
		{name: "1KB", text: chatBody(1<<10, 2)},
		{name: "100KB", text: chatBody(sized(100<<10), 40)},
		{name: "10MB", text: chatBody(sized(10<<20), 400)},
		{name: "10MB-image", text: imageBody(sized(10 << 20)), image: true},
	}
}

const (
	bodyHead = `{"model":"` + bodyModel + `","stream":true,"max_tokens":1024,"temperature":0.2,"messages":[` +
		`{"role":"system","content":"You are a helpful assistant.\nAnswer \"briefly\"."}`
	bodyTail = `],"tools":[{"type":"function","function":{"name":"lookup","description":"Looks up a model's limits.","parameters":` +
		`{"type":"object","properties":{"model":{"type":"string"}},"required":["model"]}}}]}`
)

// chatBody is about so many bytes of talk, in so many messages after the first.
func chatBody(size, messages int) []byte {
	text := []byte(bodyHead)
	words := 0
	for i := range messages {
		role := [...]string{"user", "assistant"}[i%2]
		text = fmt.Appendf(text, `,{"role":%q,"content":"`, role)
		end := len(bodyHead) + (size-len(bodyHead)-len(bodyTail))*(i+1)/messages
		for len(text)+len(`"}`) < end {
			text = append(text, word(words)...)
			words++
		}
		text = append(text, `"}`...)
	}
	return append(text, bodyTail...)
}

// imageBody asks about a picture of about so many bytes.
func imageBody(size int) []byte {
	picture := make([]byte, (size-len(bodyHead)-len(bodyTail))*3/4)
	noise := rand.NewChaCha8([32]byte{})
	noise.Read(picture)
	header := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	header = binary.BigEndian.AppendUint32(header, 2048)
	header = binary.BigEndian.AppendUint32(header, 1536)
	copy(picture, append(header, 8, 2, 0, 0, 0)) // the rest is as random as what is compressed
	return fmt.Appendf(nil, `%s,{"role":"user","content":[{"type":"text","text":"What does this show?"},`+
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}%s`, bodyHead, base64.StdEncoding.EncodeToString(picture), bodyTail)
}
