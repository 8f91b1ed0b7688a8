package project_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/project"
)

// severalLines lets a history happen to calls of one project that are for different
// models, and returns what went wrong: more has passed than may, or the first of all
// has not although it could.
func severalLines(l *line, all []event) string {
	ctx := context.Background()
	n := &naive{limit: l.Limit("p")}
	uses, calls, ended := map[string]*used{}, map[string]event{}, map[string]bool{}
	for i, e := range all {
		switch e.do {
		case "join":
			name := fmt.Sprint("call ", i)
			within, cancel := context.WithTimeout(ctx, e.patience+time.Duration(i+1))
			defer cancel()
			calls[name] = e
			model := []string{"m", "", "unknown"}[i%3]
			l.join(within, name, project.Call{Project: "p", Model: model, Requests: e.requests, Estimated: e.tokens, Priority: e.priority})
		case "commit", "cancel":
			names := l.all()
			if len(names) == 0 {
				continue
			}
			name := names[e.held%len(names)]
			if ended[name] || uses[name].tokens < int64(e.used) {
				continue // a debt would be more than may
			}
			l.commit(name, e.used, 0)
			uses[name].tokens, uses[name].places, ended[name] = int64(e.used), 0, true
		case "set":
			if err := l.SetLimit("p", e.limit); err != nil {
				return err.Error()
			}
			n.limit = e.limit
		case "pass":
			time.Sleep(e.pass)
		}
		synctest.Wait()
		if wrong := l.wrong(n, uses, calls); wrong != "" {
			return fmt.Sprintf("step %d, %+v of %+v: %s", i, e, n.limit, wrong)
		}
	}
	return ""
}

// wrong enters those who have passed since it was last asked, and says what is wrong.
func (l *line) wrong(n *naive, uses map[string]*used, calls map[string]event) string {
	passed := l.all()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range passed {
		if uses[name] != nil {
			continue
		}
		u := &used{int64(l.at[name]), int64(calls[name].requests), int64(calls[name].tokens), int64(min(n.limit.MaxConcurrent, 1))}
		uses[name], n.uses = u, append(n.uses, u)
		for _, w := range windows(n.limit) {
			if sum := n.sum(w, u.at); sum > w.Count {
				return fmt.Sprintf("with %s, %d in any %v", name, sum, w.Period)
			}
		}
	}
	first := ""
	for _, name := range l.came {
		if _, returned := l.at[name]; !returned && (first == "" || calls[name].priority > calls[first].priority) {
			first = name
		}
	}
	if first == "" {
		return ""
	}
	now := int64(time.Since(l.start))
	if _, a := n.take(used{now, int64(calls[first].requests), int64(calls[first].tokens), 1}, true); a.allowed {
		return fmt.Sprintf("%s, which is the first, could pass at %v", first, time.Duration(now))
	}
	return ""
}

// Calls of a project that are for different models and wait for what the project may
// use have no more than it may, and none is forgotten.
func TestSeveralLines(t *testing.T) {
	for _, name := range []string{"models", "models on a store"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				limit := crowded(rt)
				all := rapid.SliceOfN(events, 1, 40).Draw(rt, "events")
				var wrong string
				synctest.Test(t, func(t *testing.T) {
					wrong = severalLines(newLine(newLimiter(t, kinds[name].on(t, project.Config{Default: &limit}))), all)
				})
				if wrong != "" {
					rt.Fatal(wrong)
				}
			})
		})
	}
}
