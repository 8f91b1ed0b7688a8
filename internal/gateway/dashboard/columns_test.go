//go:build !nodashboard

package dashboard

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"
)

// Every field that a page reads of an answer is in the schema of the API, so no column is empty for ever because of a name
// that nobody sends.
func TestColumnsAreInTheAPI(t *testing.T) {
	text, err := os.ReadFile("../admin/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any `json:"properties"`
				AllOf      []struct {
					Properties map[string]any `json:"properties"`
				} `json:"allOf"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, function, variable string
		schemas                  []string
		beside                   []string // what the function reads of a value that is no answer
	}{
		{"keys.js", "keyRow", "k", []string{"Key"}, nil},
		{"keys.js", "tokenRow", "k", []string{"Key"}, nil},
		{"usage.js", "usageTable", "report", []string{"UsageReport"}, nil},
		{"usage.js", "usageTable", "s", []string{"UsageSum"}, nil},
		{"usage.js", "nameCell", "row", []string{"UsageRow"}, nil},
		{"pieces.js", "decisionRow", "d", []string{"Decision"}, nil},
		{"pieces.js", "waitingRow", "w", []string{"Waiting"}, nil},
		{"pieces.js", "askedLimits", "l", []string{"AskedLimit"}, nil},
		{"pieces.js", "history", "p", []string{"Point"}, nil},
		{"audit.js", "auditRow", "e", []string{"Entry"}, nil},
		{"explain.js", "explanation", "e", []string{"Explanation"}, nil},
		{"explain.js", "explanation", "d", []string{"Decision"}, nil},
		{"row.js", "fillRow", "data", []string{"Row"}, nil},
		{"row.js", "badgesOf", "data", []string{"Row"}, nil},
		{"row.js", "providerView", "p", []string{"ProviderLimit"}, nil},
		{"row.js", "fillGauges", "d", []string{"Dimension"}, nil},
		{"overview.js", "attention", "row", []string{"Row"}, nil},
		{"matrix.js", "", "c", []string{"Cell"}, nil},
		{"model.js", "", "c", []string{"Cell"}, nil},
		{"project.js", "", "c", []string{"Cell"}, nil},
	} {
		source, err := embedded.ReadFile("assets/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		body := string(source)
		if c.function != "" {
			found := regexp.MustCompile(`(?ms)^(?:export )?function ` + c.function + `\(.*?^\}`).FindString(body)
			if found == "" {
				t.Errorf("%s has no function %s", c.file, c.function)
			}
			body = found
		}
		read := regexp.MustCompile(`\b`+c.variable+`\??\.([a-z_]+)\b`).FindAllStringSubmatch(body, -1)
		if len(read) == 0 {
			t.Errorf("%s of %s reads nothing of %s", c.function, c.file, c.variable)
		}
		for _, match := range read {
			known := slices.ContainsFunc(c.schemas, func(name string) bool {
				schema := api.Components.Schemas[name]
				_, ok := schema.Properties[match[1]]
				for _, part := range schema.AllOf {
					_, also := part.Properties[match[1]]
					ok = ok || also
				}
				return ok
			})
			if !known && !slices.Contains(c.beside, match[1]) {
				t.Errorf("%s of %s reads %s, and %v has no such field", c.function, c.file, match[0], c.schemas)
			}
		}
	}
}
