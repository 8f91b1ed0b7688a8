package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/kind"
)

// The files that people write and that name every kind of limit.
const (
	openAPI = "internal/gateway/admin/openapi.json"
	example = "internal/gateway/config/example.yaml"
)

// block is a part of a file with a line for each kind of limit of an owner, or for each unit that calls use beside tokens.
type block struct {
	begins string // the line before it
	lines  []blockLine
}

// blockLine is a line of a block, which has a setting.
type blockLine struct{ setting, text string }

// limitLines returns a line for each kind of limit of an owner.
func limitLines(owner kind.Owner, line func(k kind.Kind) string) (lines []blockLine) {
	for _, k := range kind.Of(owner) {
		lines = append(lines, blockLine{k.Setting(), line(k)})
	}
	return lines
}

// unitLines returns a line of the OpenAPI document for each unit that calls use beside tokens.
func unitLines() (lines []blockLine) {
	for _, u := range kind.Beside {
		means := strings.ToUpper(u.Means[:1]) + u.Means[1:] + "."
		lines = append(lines, blockLine{u.Name(), fmt.Sprintf(`          %q: {"type": "integer", "minimum": 0, "description": %q},`, u.Name(), means)})
	}
	return lines
}

// blocks are the parts of files that have kinds of limits or units.
var blocks = map[string][]block{
	openAPI: {
		{`      "Quota": {`, limitLines(kind.Model, property(""))},
		{`      "Limit": {`, limitLines(kind.Project, property(""))},
		{`      "QuotaPatch": {`, limitLines(kind.Model, property("OrNull"))},
		{`      "ProjectPatch": {`, limitLines(kind.Project, property("OrNull"))},
		{`      "LimitPatch": {`, limitLines(kind.Project, property("OrNull"))},
		{`      "UsageSum": {`, unitLines()},
		{`      "UsageRow": {`, unitLines()},
	},
	example: {
		{"    # models:", limitLines(kind.Model, func(k kind.Kind) string { return fmt.Sprintf("    #     %s: 1_000 # %s", k.Setting(), k.Words()) })},
		{"defaults:", limitLines(kind.Project, func(k kind.Kind) string { return fmt.Sprintf("  %s: 0", k.Setting()) })},
		{"# runs:", limitLines(kind.Run, func(k kind.Kind) string { return fmt.Sprintf("#   %s: 1_000", k.Setting()) })},
	},
}

// property returns how the OpenAPI document describes the field of a limit.
func property(end string) func(k kind.Kind) string {
	return func(k kind.Kind) string {
		schema := "Amount"
		if k.Unit().IsMoney() {
			schema = "Dollars"
		}
		return fmt.Sprintf(`          %q: {"$ref": "#/components/schemas/%s%s"},`, k.Setting(), schema, end)
	}
}

// addKinds returns a text of blocks with each line that it lacks, behind the line before.
func addKinds(text string, all []block) (string, error) {
	lines := strings.Split(text, "\n")
	for _, b := range all {
		begins, before := slices.Index(lines, b.begins), -1
		for _, l := range b.lines {
			at := lineOf(lines, begins, l.setting)
			if at < 0 && before >= 0 {
				at = before + 1
				lines = slices.Insert(lines, at, l.text)
			}
			if at < 0 {
				return "", fmt.Errorf("there is no %q with %s", b.begins, l.setting)
			}
			before = at
		}
	}
	return strings.Join(lines, "\n"), nil
}

// longest is how many lines a block has at most.
const longest = 80

// lineOf returns which line of a block has a setting, or -1.
func lineOf(lines []string, begins int, setting string) int {
	if begins < 0 {
		return -1
	}
	has := regexp.MustCompile(`^[ #]*"?` + setting + `"?: `)
	i := slices.IndexFunc(lines[begins:min(begins+longest, len(lines))], has.MatchString)
	if i < 0 {
		return -1
	}
	return begins + i
}

// limitNames finds the list of the names of limits in the OpenAPI document.
var limitNames = regexp.MustCompile(`("LimitName": \{.*"enum": \[)[^]]*`)

// writeNames returns the OpenAPI document with the names of all limits.
func writeNames(text string) string {
	var names []string
	for _, owner := range []kind.Owner{kind.Model, kind.Project, kind.Run} {
		for _, k := range kind.Of(owner) {
			names = append(names, fmt.Sprintf("%q", k.Name()))
		}
	}
	return limitNames.ReplaceAllString(text, "${1}"+strings.Join(names, ", "))
}

// current returns a file as it is with all kinds of limits.
func current(root, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return "", err
	}
	with, err := addKinds(string(text), blocks[name])
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return writeNames(with), nil
}
