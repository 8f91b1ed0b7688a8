package docs

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	decisionTitle  = regexp.MustCompile(`^# (\d+)\. (.+)$`)
	decisionStatus = regexp.MustCompile(`^\*\*Status:\*\* (.+)\.$`)
	decisionLink   = regexp.MustCompile(`\[(\d+)\]\((\d{4})-[\w-]+\.md\)`)
)

// Every decision has its file's number, a title, a status that names only decisions which
// exist, and a row with the same in the index. TestLinks checks the links.
func TestDecisionsHaveAStatus(t *testing.T) {
	index := ""
	rows := map[string]string{}
	for _, d := range documents(t) {
		switch dir, file := path.Split(d.path); {
		case dir != "docs/decisions/":
		case file == "README.md":
			index = strings.Join(d.lines, "\n")
		default:
			row, fault := decisionRow(file, d.lines)
			if fault != "" {
				t.Errorf("%s: %s", d.path, fault)
			}
			rows[file] = row
		}
	}
	if len(rows) < 30 {
		t.Fatalf("only %d decisions were found", len(rows))
	}
	for file, row := range rows {
		if !strings.Contains(index, row) {
			t.Errorf("docs/decisions/README.md: the row of %s must be\n%s", file, row)
		}
	}
}

// decisionRow returns what the index says of a decision, or what is wrong with it.
func decisionRow(file string, lines []string) (row, fault string) {
	if len(lines) < 3 {
		return "", "it has no title and no status"
	}
	title, status := decisionTitle.FindStringSubmatch(lines[0]), decisionStatus.FindStringSubmatch(lines[2])
	switch {
	case title == nil || !strings.HasPrefix(file, fmt.Sprintf("%04s-", title[1])):
		return "", fmt.Sprintf("the first line must be a title with the number of the file: %q", lines[0])
	case status == nil || !validStatus(status[1]):
		return "", fmt.Sprintf("the third line must be **Status:** accepted, accepted and amended by a [number](file), or superseded by one: %q", lines[2])
	}
	return fmt.Sprintf("| [%s](%s) | %s | %s |", title[1], file, title[2], decisionLink.ReplaceAllString(status[1], "$1")), ""
}

// validStatus reports whether a status is one of the three that there are. The number of a
// link must be that of its file.
func validStatus(status string) bool {
	for _, link := range decisionLink.FindAllStringSubmatch(status, -1) {
		if fmt.Sprintf("%04s", link[1]) != link[2] {
			return false
		}
	}
	switch decisionLink.ReplaceAllString(status, "N") {
	case "accepted", "accepted, amended by N", "accepted, amended by N and N", "superseded by N":
		return true
	}
	return false
}

func TestValidStatus(t *testing.T) {
	for status, want := range map[string]bool{
		"accepted":                               true,
		"accepted, amended by [31](0031-x.md)":   true,
		"superseded by [33](0033-one-ledger.md)": true,
		"superseded by [33](0034-one-ledger.md)": false,
		"superseded by 33":                       false,
		"superseded":                             false,
		"proposed":                               false,
		"":                                       false,
	} {
		if got := validStatus(status); got != want {
			t.Errorf("%q: %v, want %v", status, got, want)
		}
	}
}
