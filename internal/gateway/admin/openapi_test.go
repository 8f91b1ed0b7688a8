package admin

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/project"
)

var methods = []string{"get", "put", "post", "delete", "patch"}

// operations returns all operations of the document, as "GET /path".
func operations(doc object) map[string]object {
	all := map[string]object{}
	for path, item := range doc["paths"].(object) {
		for _, method := range methods {
			if op, ok := item.(object)[method].(object); ok {
				all[strings.ToUpper(method)+" "+path] = op
			}
		}
	}
	return all
}

func TestDocumentHasAllRoutes(t *testing.T) {
	routes := []string{"GET /metrics"}
	for _, r := range new(Admin).routes() {
		routes = append(routes, strings.ReplaceAll(r.pattern, "...}", "}"))
	}
	slices.Sort(routes)
	documented := slices.Sorted(maps.Keys(operations(document(t))))
	if diff := cmp.Diff(routes, documented); diff != "" {
		t.Errorf("the routes (-) and the document (+) differ:\n%s", diff)
	}
}

// The document has the status of every route's success.
func TestDocumentHasTheStatusOfSuccess(t *testing.T) {
	ops := operations(document(t))
	for _, r := range new(Admin).routes() {
		responses := ops[strings.ReplaceAll(r.pattern, "...}", "}")]["responses"].(object)
		for status := range responses {
			if status < "300" && status != fmt.Sprint(r.status) {
				t.Errorf("%s answers with %d: the document has %s", r.pattern, r.status, status)
			}
		}
	}
}

func TestDocumentIsWellFormed(t *testing.T) {
	doc := document(t)
	if doc["openapi"] != "3.1.0" {
		t.Errorf("openapi is %v", doc["openapi"])
	}
	for _, name := range []string{"title", "version", "description"} {
		if text, _ := doc["info"].(object)[name].(string); text == "" {
			t.Errorf("info has no %s", name)
		}
	}
	var tags []any
	for _, tag := range doc["tags"].([]any) {
		tags = append(tags, tag.(object)["name"])
	}
	ids := map[any]string{}
	for name, op := range operations(doc) {
		id := op["operationId"]
		if other, taken := ids[id]; taken || id == nil {
			t.Errorf("%s has the operationId %v, as %s", name, id, other)
		}
		ids[id] = name
		if text, _ := op["summary"].(string); text == "" {
			t.Errorf("%s has no summary", name)
		}
		if list, _ := op["tags"].([]any); len(list) != 1 || !slices.Contains(tags, list[0]) {
			t.Errorf("%s has the tags %v", name, op["tags"])
		}
		checkParameters(t, doc, name, op)
		checkResponses(t, doc, name, op)
	}
}

// checkParameters checks that the document describes each {part} of a path, and that each
// parameter has a schema.
func checkParameters(t *testing.T, doc object, name string, op object) {
	_, path, _ := strings.Cut(name, " ")
	shared, _ := doc["paths"].(object)[path].(object)["parameters"].([]any)
	own, _ := op["parameters"].([]any)
	var described []string
	for _, p := range slices.Concat(shared, own) {
		p = followed(t, doc, p)
		if p.(object)["schema"] == nil || p.(object)["description"] == nil {
			t.Errorf("%s: a parameter lacks a schema or a description: %v", name, p)
		}
		if p.(object)["in"] == "path" {
			described = append(described, "{"+p.(object)["name"].(string)+"}")
		}
	}
	if parts := regexp.MustCompile(`\{\w+\}`).FindAllString(path, -1); !cmp.Equal(parts, described) {
		t.Errorf("%s describes %v", name, described)
	}
}

func checkResponses(t *testing.T, doc object, name string, op object) {
	responses := op["responses"].(object)
	wanted := []string{"500"}
	if op["security"] == nil {
		wanted = append(wanted, "401", "403")
	}
	if op["requestBody"] != nil {
		wanted = append(wanted, "400", "413", "415", "503")
	}
	for _, status := range wanted {
		if responses[status] == nil {
			t.Errorf("%s does not say when it answers with %s", name, status)
		}
	}
	for status, each := range responses {
		response := followed(t, doc, each).(object)
		content, _ := response["content"].(object)
		if response["description"] == nil || (len(content) == 0) != (status == "204") {
			t.Errorf("%s: the response %s has no description, or no content", name, status)
		}
		if status >= "400" && content["application/problem+json"] == nil {
			t.Errorf("%s: the response %s is no problem", name, status)
		}
	}
}

// followed returns the value that a reference leads to, or the value itself.
func followed(t *testing.T, doc object, value any) any {
	t.Helper()
	ref, ok := value.(object)["$ref"].(string)
	if !ok {
		return value
	}
	to, err := resolve(doc, ref)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// Every reference leads to a component, and every component is used.
func TestDocumentHasNoLooseEnds(t *testing.T) {
	doc := document(t)
	used := map[string]bool{}
	walk(doc, func(o object) {
		if ref, ok := o["$ref"].(string); ok {
			used[ref] = true
			if _, err := resolve(doc, ref); err != nil {
				t.Error(err)
			}
		}
	})
	for kind, all := range doc["components"].(object) {
		for name := range all.(object) {
			if ref := "#/components/" + kind + "/" + name; !used[ref] && kind != "securitySchemes" {
				t.Errorf("nothing refers to %s", ref)
			}
		}
	}
}

// walk calls fn with every object in a value.
func walk(value any, fn func(object)) {
	switch value := value.(type) {
	case object:
		fn(value)
		for _, each := range value {
			walk(each, fn)
		}
	case []any:
		for _, each := range value {
			walk(each, fn)
		}
	}
}

// Examples, beside schemas and inside them, are valid by their schemas.
func TestExamplesAreValid(t *testing.T) {
	doc := document(t)
	v := &validator{doc}
	n := 0
	check := func(value, schema any) {
		n++
		if err := v.validate(value, schema); err != nil {
			t.Errorf("the example %v: %v", value, err)
		}
	}
	walk(doc, func(o object) {
		schema, beside := o["schema"].(object)
		if example, ok := o["example"]; ok && beside {
			check(example, schema)
		}
		if examples, ok := o["examples"].(object); ok && beside {
			for _, each := range examples {
				check(each.(object)["value"], schema)
			}
		}
		if examples, ok := o["examples"].([]any); ok {
			for _, each := range examples {
				check(each, o)
			}
		}
	})
	if n < 15 {
		t.Errorf("there are only %d examples", n)
	}
}

// A schema has the fields of its Go type, and requires those that JSON always has.
func TestSchemasMatchTheirTypes(t *testing.T) {
	schemas := document(t)["components"].(object)["schemas"].(object)
	for name, of := range map[string]any{
		"Problem": Problem{}, "Session": Session{}, "SignIn": SignIn{}, "Health": Health{}, "State": State{}, "Model": Model{}, "Usage": Usage{}, "ModelList": ModelList{},
		"Project": Project{}, "Window": Window{}, "ProjectList": ProjectList{}, "Key": keys.Key{}, "KeyList": KeyList{},
		"IssuedKey": IssuedKey{}, "Reloaded": Reloaded{}, "ReloadChange": ReloadChange{}, "Decision": Decision{}, "DecisionList": DecisionList{},
		"Entry": Entry{}, "AuditList": AuditList{}, "NewKey": NewKey{}, "NewToken": NewToken{}, "TokenList": TokenList{}, "KeyPatch": KeySettings{}, "ProjectPatch": ProjectSettings{}, "QuotaPatch": QuotaSettings{}, "Preview": Preview{}, "Gateway": Gateway{}, "GatewayPatch": control.Gateway{}, "FieldChange": FieldChange{}, "Rotation": Rotation{},
		"Quota": Quota{}, "Limit": project.Limit{},
		"Overview": Overview{}, "OverviewDelta": OverviewDelta{}, "Totals": Totals{}, "Row": Row{}, "RowPause": RowPause{}, "Dimension": Dimension{},
		"Minute": Minute{}, "Denials": figures.Denials{}, "ProviderLimit": ProviderLimit{}, "ProjectRows": ProjectRows{}, "Matrix": Matrix{}, "Cell": Cell{},
		"History": History{}, "Point": Point{},
		"UsageReport": UsageReport{}, "UsageRow": UsageRow{}, "UsageSum": UsageSum{},
		"AskedLimit": AskedLimit{}, "AskedShare": AskedShare{}, "Explanation": Explanation{}, "Question": Question{}, "Answer": Answer{},
		"Waiting": Waiting{}, "WaitingList": WaitingList{}, "Threshold": Threshold{}, "Pause": Pause{}, "ReloadEvent": ReloadEvent{},
		"StoreEvent": StoreEvent{}, "Missed": Missed{}, "Silent": Silent{},
	} {
		schema := schemas[name].(object)
		all, always := jsonFields(reflect.TypeOf(of))
		if diff := cmp.Diff(all, slices.Sorted(maps.Keys(schema["properties"].(object)))); diff != "" {
			t.Errorf("the fields of %s (-) and of its schema (+) differ:\n%s", name, diff)
		}
		if name == "Quota" || name == "QuotaPatch" { // a request to set a quota may leave out any field
			continue
		}
		var required []string
		list, _ := schema["required"].([]any)
		for _, each := range list {
			required = append(required, each.(string))
		}
		slices.Sort(required)
		if diff := cmp.Diff(always, required); diff != "" {
			t.Errorf("what %s always has (-) and what its schema requires (+) differ:\n%s", name, diff)
		}
	}
}

// jsonFields returns the names that a type's fields have in JSON: all, and those that JSON
// always has.
func jsonFields(of reflect.Type) (all, always []string) {
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "-" {
			continue
		}
		all = append(all, name)
		if !strings.HasPrefix(options, "omit") {
			always = append(always, name)
		}
	}
	slices.Sort(all)
	slices.Sort(always)
	return all, always
}
