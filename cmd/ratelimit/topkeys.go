package main

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// press acts on a key.
func (t *top) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case t.asking != nil:
		return t.answer(name)
	case t.typing:
		return t.typeFilter(name, key.Text)
	}
	t.note = ""
	switch name {
	case "q":
		return tea.Quit
	case "esc":
		if t.details {
			t.details = false
			return nil
		}
		t.filter = ""
		return t.find()
	case "enter":
		t.details = !t.details
	case "up", "k":
		t.move(-1)
	case "down", "j":
		t.move(1)
	case "pgup":
		t.move(-10)
	case "pgdown":
		t.move(10)
	case "tab":
		t.inProjects, t.chosen = !t.inProjects, ""
	case "s":
		t.order = rowOrders[(slices.Index(rowOrders, t.order)+1)%len(rowOrders)]
		t.found = nil
		return t.find()
	case "/":
		t.typing, t.details = true, false
	case "p":
		t.ask()
	}
	return nil
}

// move chooses another row. Beyond the last model are the projects, and before these the models.
func (t *top) move(by int) {
	rows := t.rows(t.inProjects)
	at := t.chosenIn(rows) + by
	switch others := t.rows(!t.inProjects); {
	case at >= len(rows) && !t.inProjects && len(others) > 0:
		t.inProjects, rows, at = true, others, 0
	case at < 0 && t.inProjects && len(others) > 0:
		t.inProjects, rows, at = false, others, len(others)-1
	}
	if len(rows) > 0 {
		t.chosen = rows[min(max(at, 0), len(rows)-1)].Name
	}
}

// typeFilter changes the filter by a key.
func (t *top) typeFilter(name, text string) tea.Cmd {
	switch name {
	case "enter":
		t.typing = false
	case "esc":
		t.typing, t.filter = false, ""
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(t.filter)
		t.filter = t.filter[:len(t.filter)-size]
	default:
		t.filter += text
	}
	t.found, t.chosen = nil, ""
	return t.find()
}

// ask asks whether to pause the chosen row, or to resume it if it is paused.
func (t *top) ask() {
	rows := t.rows(t.inProjects)
	if len(rows) == 0 {
		return
	}
	row := rows[t.chosenIn(rows)]
	t.chosen = row.Name
	of := models
	if t.inProjects {
		of = projects
	}
	t.asking = &pausing{of.word + " " + row.Name, admin.Edit{Of: of.kind, Name: row.Name, Patch: admin.Patch{"paused": !row.Paused}}, !row.Paused}
}

// question returns what is asked.
func (p *pausing) question() string {
	if p.pause {
		return "Pause " + p.title + "? Its calls are denied until it is resumed. [y/N]"
	}
	return "Resume " + p.title + "? [y/N]"
}

// answer acts on the answer to the question, which is asked once.
func (t *top) answer(name string) tea.Cmd {
	asked := t.asking
	t.asking = nil
	if name != "y" && name != "Y" {
		t.note = "nothing was changed"
		return nil
	}
	return func() tea.Msg {
		done := asked.title + " is resumed"
		if asked.pause {
			done = asked.title + " is paused"
		}
		_, err := admin.Apply[json.RawMessage](t.ctx, t.client, asked.edit)
		return pausedMsg{done, err}
	}
}
