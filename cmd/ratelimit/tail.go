package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

// follower prints events.
type follower struct {
	out, note *console.Writer
	asJSON    bool
	left      int // how many events are still to be printed; less than 0: any number
	opened    bool
}

// errEnough ends a stream of which enough was printed.
var errEnough = errors.New("enough")

// reconnectAfter is how long a follower waits before it tries again to reach a gateway that has gone.
const reconnectAfter = time.Second

func newTail() *cobra.Command {
	a := &adminFlags{}
	var project, model, key, outcome, kind string
	var asJSON bool
	var most int
	c := &cobra.Command{
		Use:   "tail",
		Short: "Show decisions and other events as they come",
		Long: `Show decisions and other events as they come, until Ctrl-C: what became of each call, budgets
that reach a threshold, pauses of providers, changes, reloads, and the loss of Redis. The time
of a call is that of its end. Several gateways on one Redis are shown as one: events of the
others come within two seconds, and a gateway that does not answer is named. Of a gateway with
more than 256 events a second, some are left out and counted. If the gateway goes, the command
waits until it is back.`,
		Example: `  ratelimit tail
  ratelimit tail --project acme --outcome denied,throttled
  ratelimit tail --kind change,pause,resume --json`,
		Args: arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, _ []string) error {
			q := url.Values{}
			for name, value := range map[string]string{"project": project, "model": model, "key": key, "outcome": outcome, "kind": kind} {
				if value != "" {
					q.Set(name, value)
				}
			}
			f := &follower{out: console.Of(c.OutOrStdout()), note: console.Of(c.ErrOrStderr()), asJSON: asJSON, left: most}
			if most == 0 {
				f.left = -1
			}
			return f.run(c.Context(), client, q)
		}),
	}
	a.flags(c)
	fl := c.Flags()
	fl.StringVar(&project, "project", "", "only of the project with this `PATH`, and of those below it")
	fl.StringVar(&model, "model", "", "only of this `MODEL`")
	fl.StringVar(&key, "key", "", "only of the key with this `ID`")
	fl.StringVar(&outcome, "outcome", "", "only decisions with one of these `OUTCOMES`, such as denied,throttled")
	fl.StringVar(&kind, "kind", "", "only these `KINDS`: decision, threshold, pause, resume, change, reload, store")
	fl.IntVarP(&most, "most", "n", 0, "end after so many; 0 is never")
	fl.BoolVar(&asJSON, "json", false, "print one JSON object a line")
	c.RegisterFlagCompletionFunc("project", a.completeFlag(projectNames))
	c.RegisterFlagCompletionFunc("model", a.completeFlag(modelNames))
	c.RegisterFlagCompletionFunc("key", a.completeFlag(keyNames))
	return c
}

// run prints events until ctx ends, which is no error. A gateway that was reached once and has gone is
// asked again and again.
func (f *follower) run(ctx context.Context, client *admin.Client, q url.Values) error {
	for {
		err := client.Events(ctx, q, f.take)
		_, refused := errors.AsType[*admin.Problem](err)
		switch {
		case ctx.Err() != nil, errors.Is(err, errEnough):
			return nil
		case !f.opened || refused:
			return err
		}
		fmt.Fprintf(f.note, "%s; trying again\n", message.Plain(err))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnectAfter):
		}
	}
}

// take prints an event.
func (f *follower) take(event string, data []byte) (err error) {
	if event == "open" {
		f.opened = true
		fmt.Fprintln(f.note, "following the gateway; Ctrl-C ends")
		return nil
	}
	if f.asJSON {
		err = f.out.JSONLine(map[string]any{"event": event, "data": json.RawMessage(data)})
	} else {
		err = f.out.Lines([]string{eventLine(event, data, f.out.Columns())})
	}
	f.left--
	if err == nil && f.left == 0 {
		return errEnough
	}
	return err
}

// eventLine returns an event in one line.
func eventLine(event string, data []byte, width int) string {
	if event == "decision" {
		var d admin.Decision
		if json.Unmarshal(data, &d) == nil {
			return decisionLine(d, width)
		}
	}
	fields, about := map[string]any{}, map[string]string{}
	json.Unmarshal(data, &fields) // an event that is no JSON object has no fields to show
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(fields["time"]))
	if err != nil { // events that are missed have none
		at = time.Now()
	}
	parts := changesOf(fields["before"], fields["after"])
	for _, shown := range []string{"time", "before", "after", "seq"} {
		delete(fields, shown)
	}
	flatten("", fields, about)
	for _, name := range sortedNames(about) {
		parts = append(parts, name+" "+about[name])
	}
	return console.Cut(console.Printable(fmt.Sprintf("%s  %-9s  %s", clock(at), event, strings.Join(parts, ", "))), width)
}

func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }

// decisionLine returns what became of a request, and when: what matters most first. The event of a decision comes when
// the request ends, so the lines are in the order of these times.
func decisionLine(d admin.Decision, width int) string {
	who := d.Project
	if d.User != "" {
		who += "/" + d.User
	}
	parts := []string{clock(d.Time.Add(time.Duration(d.Took * 1e9))), fmt.Sprintf("%-9s", d.Outcome), orNone(who), d.Model}
	if d.Limit != "" {
		parts = append(parts, "by "+strings.TrimSpace(admin.LimitInWords(d.Limit)+" of "+d.Owner))
	}
	if d.Waited >= 0.01 {
		parts = append(parts, fmt.Sprintf("waited %.2f s", d.Waited))
	}
	if n := int64(d.Input + d.Output); n > 0 {
		parts = append(parts, numeral.Grouped(n)+" tokens")
	}
	if d.Gateway != "" {
		parts = append(parts, "at "+d.Gateway)
	}
	parts = append(parts, fmt.Sprint(d.Status), d.ID)
	line := console.Printable(strings.Join(parts, "  "))
	if width > 0 && console.Width(line) > width { // the id is what other commands need
		end := "  " + console.Printable(d.ID)
		line = console.Cut(console.Printable(strings.Join(parts[:len(parts)-1], "  ")), width-console.Width(end)) + end
	}
	if d.Outcome == "passed" {
		return line
	}
	return console.Bad(line)
}
