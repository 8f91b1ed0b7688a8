package webhook

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/price"
)

// Type is the type of every message.
const Type = "budget.threshold"

// Message is the body of a message.
type Message struct {
	Type      string    `json:"type"`      // [Type]
	Timestamp time.Time `json:"timestamp"` // when the threshold was reached
	Data      Data      `json:"data"`
}

// Data is the budget that has reached a threshold.
type Data struct {
	Owner   string      `json:"owner"`   // whose budget it is: the id of a project, or "key" or "run" with the id of that
	Project string      `json:"project"` // whose call has reached the threshold: the owner, or a project below it
	Limit   string      `json:"limit"`   // the budget's name, such as "dollars_per_month"
	Unit    string      `json:"unit"`    // "requests", "tokens" or "dollars"
	Percent int         `json:"percent"` // the threshold
	Used    json.Number `json:"used"`    // in the unit, what calls under way have reserved included
	Max     json.Number `json:"max"`     // the budget
	Resets  *time.Time  `json:"resets_at,omitempty"`
}

// message is a message that is to be delivered.
type message struct {
	id       string
	made     time.Time
	body     []byte
	budget   event.Budget
	attempts int
}

func newMessage(e *event.Event, now time.Time) *message {
	b := e.Budget
	body := Message{Type: Type, Timestamp: b.At, Data: Data{
		Owner: b.Owner, Project: e.Project, Limit: b.Limit, Unit: b.Unit, Percent: b.Percent,
		Used: number(b.Unit, b.Used), Max: number(b.Unit, b.Max),
	}}
	if !b.Resets.IsZero() {
		body.Data.Resets = &b.Resets
	}
	text, _ := json.Marshal(body) // texts, numbers and times of this century can always be written
	return &message{id: "msg_" + rand.Text(), made: now, body: text, budget: *b}
}

// number returns an amount of a unit.
func number(unit string, n int64) json.Number {
	if unit == "dollars" {
		return json.Number(price.Amount(n).Decimal())
	}
	return json.Number(strconv.FormatInt(n, 10))
}
