package tsclient

import (
	"os"
	"strings"
	"testing"
)

// small is a document with one of each that the generator knows.
const small = `{
	"info": {"title": "a test", "version": "1", "summary": "Test."},
	"components": {"schemas": {
		"Problem": {"type": "object", "required": ["detail"], "properties": {"detail": {"type": "string"}}},
		"Thing": {"description": "A */ thing.", "type": "object", "required": ["name"], "properties": {
			"name": {"type": "string", "description": "Its name."},
			"odd-name": {"type": ["integer", "null"]},
			"kind": {"enum": ["a", "b"]},
			"is": {"const": "[it]"},
			"parts": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}},
			"inner": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
			"any": {},
			"map": {"type": "object", "additionalProperties": {"type": "number"}}
		}},
		"Either": {"oneOf": [{"type": "string"}, {"type": "number"}]}
	}},
	"paths": {
		"/things/{name}": {
			"parameters": [{"name": "name", "in": "path", "schema": {"type": "string"}}],
			"get": {"operationId": "thing", "summary": "One.", "parameters": [{"name": "depth", "in": "query", "schema": {"type": "integer"}}],
				"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}}},
			"put": {"operationId": "setThing", "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}, "responses": {"204": {}}}
		},
		"/text": {"get": {"operationId": "text", "responses": {"200": {"content": {"text/plain": {}}}}}},
		"/live": {"get": {"operationId": "live", "responses": {"200": {"content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/Either"}}}}}}}
	}
}`

func TestGenerate(t *testing.T) {
	text, err := Generate([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"export type Either = string | number;",
		"/** A *\u200b/ thing. */\nexport type Thing = {\n  any?: unknown;\n  inner?: {\n    deep?: boolean;\n  };\n  is?: \"[it]\";\n  kind?: \"a\" | \"b\";\n  map?: Record<string, number>;\n  /** Its name. */\n  name: string;\n  \"odd-name\"?: number | null;\n  parts?: Array<Thing>;\n};",
		"  /** One. */\n  thing(name: string, query: { depth?: number | undefined } = {}, signal?: AbortSignal): Promise<Thing> {\n    return this.sender.json({ method: \"GET\", path: `/things/${encodeURIComponent(name)}`, query, signal });\n  }",
		"setThing(name: string, body: Thing, signal?: AbortSignal): Promise<void> {\n    return this.sender.nothing({",
		"text(signal?: AbortSignal): Promise<string>",
		"live(signal?: AbortSignal): AsyncGenerator<ServerSentEvent<Either>, void, undefined>",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if again, _ := Generate([]byte(small)); string(again) != string(text) {
		t.Error("the same document makes another client")
	}
}

// What the generator does not know, it refuses.
func TestGenerateRefuses(t *testing.T) {
	for says, change := range map[string][2]string{
		"invalid character":                 {`{`, `x`},
		"has allOf, which is not supported": {`{"type": "string"}, {"type": "number"}`, `{"allOf": []}`},
		`the type "date" is not supported`:  {`{"type": "boolean"}`, `{"type": "date"}`},
		"in header, which is not supported": {`"in": "query"`, `"in": "header"`},
		"which is no name of a method":      {`"setThing"`, `"set thing"`},
		"text has no answer that is":        {`"text/plain": {}`, `"image/png": {}`},
		"is no object":                      {`{"operationId": "text"`, `5, "put": {"operationId": "text"`},
	} {
		if _, err := Generate([]byte(strings.Replace(small, change[0], change[1], 1))); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", change[1], err)
		}
	}
}

// The document of the admin API makes a client with all of its operations. That it compiles, and what it
// does, is tested in interop.
func TestGenerateFromTheAPI(t *testing.T) {
	document, err := os.ReadFile("../../internal/gateway/admin/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := Generate(document)
	if err != nil {
		t.Fatal(err)
	}
	if n, want := strings.Count(string(text), "return this.sender."), strings.Count(string(document), `"operationId"`); n != want {
		t.Errorf("the client has %d methods, and the API %d operations", n, want)
	}
}
