package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// auditQuestion is what the flags of audit ask.
type auditQuestion struct {
	file, action, subject string
	since                 span
	last                  int
	all                   bool
}

func newAudit() *cobra.Command {
	a := &adminFlags{}
	var q auditQuestion
	c := &cobra.Command{
		Use:   "audit",
		Short: "Show which changes were made, by whom, and what they changed",
		Long: `Show which changes were made by the admin API, by whom, and what they changed, the newest
last. A running gateway answers for the last 1,024 entries, or with --file its audit log for
all of them: the file is named like the state's, with .audit.jsonl added.`,
		Example: `  ratelimit audit --since 24h
  ratelimit audit --subject acme
  ratelimit audit --action key. --file ~/.core/ratelimits.db.audit.jsonl`,
		Args: arguments,
		RunE: func(c *cobra.Command, args []string) error {
			list := func(all []admin.Entry, err error) error {
				if err != nil {
					return err
				}
				all = q.choose(all, time.Now())
				return show(c, all, func(width int) []string { return auditLines(all, width) })
			}
			if q.file != "" {
				return list(readAudit(q.file))
			}
			return a.run(func(c *cobra.Command, client *admin.Client, _ []string) error {
				return list(askAudit(c.Context(), client))
			})(c, args)
		},
	}
	a.flags(c)
	f := c.Flags()
	f.StringVar(&q.file, "file", "", "read the audit log in this `FILE`, and do not ask a gateway")
	f.StringVar(&q.action, "action", "", "only actions that begin so, such as key. or limit.set")
	f.StringVar(&q.subject, "subject", "", "only changes of this project and those below it, of this model or of this key")
	f.Var(&q.since, "since", "only changes of this last `TIME`, such as 90m, 12h or 30d (default: all)")
	f.IntVarP(&q.last, "most", "n", 50, "how many entries are shown; 0 is all")
	f.BoolVar(&q.all, "all", false, "show what was intended, too: each change has an entry before it is made")
	jsonFlag(c)
	return c
}

// askAudit returns the entries that a gateway keeps in memory.
func askAudit(ctx context.Context, client *admin.Client) (all []admin.Entry, err error) {
	for after := uint64(0); ; {
		page, err := client.Audit(ctx, after)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Entries...)
		if len(page.Entries) == 0 || page.Next == after {
			return all, nil
		}
		after = page.Next
	}
}

// readAudit returns the entries of an audit log. What is no entry is skipped: a gateway that was killed
// may have left half a line.
func readAudit(path string) (all []admin.Entry, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e admin.Entry
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Action != "" {
			all = append(all, e)
		}
	}
	return all, lines.Err()
}

// choose returns the entries that are asked for. An intention is one of them if its end is not known.
func (q *auditQuestion) choose(all []admin.Entry, now time.Time) []admin.Entry {
	chosen := []admin.Entry{}
	for i, e := range all {
		ended := i+1 < len(all) && e.Result == "intended" && all[i+1].Action == e.Action && all[i+1].Subject == e.Subject
		switch {
		case ended && !q.all,
			q.since > 0 && now.Sub(e.Time) > time.Duration(q.since),
			!strings.HasPrefix(e.Action, q.action),
			q.subject != "" && e.Subject != q.subject && !strings.HasPrefix(e.Subject, q.subject+"/"):
			continue
		}
		chosen = append(chosen, e)
	}
	if q.last > 0 && len(chosen) > q.last {
		chosen = chosen[len(chosen)-q.last:]
	}
	return chosen
}

// auditLines returns entries as a table for people.
func auditLines(all []admin.Entry, width int) []string {
	if len(all) == 0 {
		return []string{"no matching changes"}
	}
	t := console.NewTable(console.Text("time"), console.Text("action"), console.Text("of").ShortenedAtStart(12), console.Text("by").Leaves(1), console.Text("").Below())
	for _, e := range all {
		notes := changesOf(e.Before, e.After)
		if !e.Until.IsZero() {
			notes = append(notes, "until "+e.Until.Format("2006-01-02 15:04:05"))
		}
		if e.Reason != "" {
			notes = append(notes, "because: "+e.Reason)
		}
		var style func(string) string
		if e.Result != "done" {
			notes, style = append([]string{strings.TrimSpace(e.Result + " " + e.Error)}, notes...), console.Bad
		}
		t.AddStyled(style, e.Time.Format("2006-01-02 15:04:05"), e.Action, e.Subject, strings.TrimSuffix(e.Who+" at "+e.Gateway, " at "), strings.Join(notes, ", "))
	}
	return t.Lines(width)
}

// changesOf returns what has changed between two documents, such as max_rpm: 100 → 50.
func changesOf(before, after any) (changes []string) {
	old, new := map[string]string{}, map[string]string{}
	flatten("", before, old)
	flatten("", after, new)
	for _, name := range sortedNames(old, new) {
		if old[name] != new[name] {
			changes = append(changes, fmt.Sprintf("%s: %s → %s", name, orNone(old[name]), orNone(new[name])))
		}
	}
	return changes
}

// sortedNames returns the names in some maps, each once.
func sortedNames(maps ...map[string]string) (names []string) {
	for _, m := range maps {
		for name := range m {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// flatten adds the fields of a JSON document to a map, by their paths.
func flatten(path string, v any, to map[string]string) {
	fields, ok := v.(map[string]any)
	if !ok {
		if v != nil && path != "" {
			text, _ := json.Marshal(v) // of what came from JSON
			to[path] = strings.Trim(string(text), `"`)
		}
		return
	}
	for name, value := range fields {
		if path != "" {
			name = path + "." + name
		}
		flatten(name, value, to)
	}
}
