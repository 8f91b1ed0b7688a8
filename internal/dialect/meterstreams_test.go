package dialect_test

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// meterStream is the body of a response, and what a meter must report about it.
type meterStream struct {
	name  string
	api   dialect.API
	body  string
	want  llm.Usage
	fault string

	// truth is how many tokens were really generated.
	truth int
}

// sse returns a stream of events, each with a line of data.
func sse(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

// named returns a stream of events with their types as names, as Anthropic's and those of OpenAI's
// responses have them.
func named(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		_, kind, _ := strings.Cut(d, `"type":"`)
		kind, _, _ = strings.Cut(kind, `"`)
		b.WriteString("event: " + kind + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

// chunk returns a chunk of OpenAI's chat with these choices and usage.
func chunk(choices, usage string) string {
	return `{"id":"chatcmpl-BjDSx8aZ","object":"chat.completion.chunk","created":1794733200,"model":"gpt-6-luna",` +
		`"service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":` + choices + `,"usage":` + usage + `}`
}

// delta returns a chunk with a delta.
func delta(members string) string {
	return chunk(`[{"index":0,"delta":{`+members+`},"logprobs":null,"finish_reason":null}]`, "null")
}

// meterStreams are the answers of all providers: the test file of each adds its own.
var meterStreams []meterStream

// frame returns a message in AWS's event stream format. The headers are given as pairs.
func frame(payload string, headers ...string) string {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(append(h, byte(len(headers[i]))), headers[i]...)
		h = append(h, 7) // a string
		h = binary.BigEndian.AppendUint16(h, uint16(len(headers[i+1])))
		h = append(h, headers[i+1]...)
	}
	f := binary.BigEndian.AppendUint32(nil, uint32(12+len(h)+len(payload)+4))
	f = binary.BigEndian.AppendUint32(f, uint32(len(h)))
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	f = append(append(f, h...), payload...)
	return string(binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f)))
}

// converseFrames returns a Converse stream, from types of events and their payloads.
func converseFrames(events ...string) string {
	var b strings.Builder
	for i := 0; i < len(events); i += 2 {
		b.WriteString(frame(events[i+1], ":event-type", events[i], ":content-type", "application/json", ":message-type", "event"))
	}
	return b.String()
}

// invokeFrames returns an Invoke stream, from the model's own events.
func invokeFrames(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		payload := `{"bytes":"` + strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(e)), "/", `\/`) + `","p":"abcdef"}`
		b.WriteString(frame(payload, ":event-type", "chunk", ":content-type", "application/json", ":message-type", "event"))
	}
	return b.String()
}
