package tsclient

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// methods are those of HTTP that operations have.
var methods = []string{"get", "put", "post", "delete", "patch"}

// client writes the class with a method for each operation.
func (w *writer) client() {
	w.comment("", w.object(w.doc["info"])["summary"])
	w.WriteString("export class Client {\n  private readonly sender: Sender;\n\n  constructor(options: Options) {\n    this.sender = new Sender(options);\n  }\n")
	paths := w.object(w.doc["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := w.object(paths[path])
		for _, method := range methods {
			if item[method] != nil {
				w.operation(method, path, w.object(item[method]), w.list(item["parameters"]))
			}
		}
	}
	w.WriteString("}\n")
}

// operation writes the method of an operation.
func (w *writer) operation(method, path string, op object, shared []any) {
	name, _ := op["operationId"].(string)
	if !identifier.MatchString(name) {
		w.faultf("%s %s has the operationId %q, which is no name of a method", method, path, name)
	}
	var arguments, query []string
	call := []string{fmt.Sprintf("method: %q", strings.ToUpper(method)), "path: " + template(path)}
	for _, each := range append(shared, w.list(op["parameters"])...) {
		p := w.follow(each)
		of, in := w.typeOf(w.object(p["schema"]), ""), p["in"]
		switch in {
		case "path":
			arguments = append(arguments, fmt.Sprintf("%s: %s", p["name"], of))
		case "query":
			query = append(query, fmt.Sprintf("%s?: %s | undefined", p["name"], of))
		default:
			w.faultf("%s has a parameter in %v, which is not supported", name, in)
		}
	}
	if body := w.body(op); body != "" {
		arguments, call = append(arguments, "body: "+body), append(call, "body")
	}
	if query != nil {
		arguments, call = append(arguments, "query: { "+strings.Join(query, "; ")+" } = {}"), append(call, "query")
	}
	arguments, call = append(arguments, "signal?: AbortSignal"), append(call, "signal")
	returns, send := w.answer(name, op)
	w.WriteString("\n")
	w.comment("  ", op["summary"])
	fmt.Fprintf(w, "  %s(%s): %s {\n    return this.sender.%s({ %s });\n  }\n", name, strings.Join(arguments, ", "), returns, send, strings.Join(call, ", "))
}

// body returns the type of the body of an operation, or "" if it has none.
func (w *writer) body(op object) string {
	if op["requestBody"] == nil {
		return ""
	}
	content := w.object(w.object(w.follow(op["requestBody"])["content"])["application/json"])
	return w.typeOf(w.object(content["schema"]), "  ")
}

// answer returns the type of what a method returns, and the method of the sender that makes it.
func (w *writer) answer(name string, op object) (returns, send string) {
	responses := w.object(op["responses"])
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if status >= "300" {
			break
		}
		content, _ := w.follow(responses[status])["content"].(object)
		of := func(kind string) string { return w.typeOf(w.object(w.object(content[kind])["schema"]), "  ") }
		switch {
		case content == nil:
			return "Promise<void>", "nothing"
		case content["application/json"] != nil:
			return "Promise<" + of("application/json") + ">", "json"
		case content["text/event-stream"] != nil:
			return "AsyncGenerator<ServerSentEvent<" + of("text/event-stream") + ">, void, undefined>", "events"
		case content["text/plain"] != nil:
			return "Promise<string>", "text"
		}
	}
	w.faultf("%s has no answer that is supported", name)
	return "", ""
}

// template returns a path as a template literal, with its parameters escaped.
func template(path string) string {
	return "`" + strings.NewReplacer("{", "${encodeURIComponent(", "}", ")}").Replace(path) + "`"
}
