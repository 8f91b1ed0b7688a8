package mockprovider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"

	"dappco.re/go/core/go-ratelimit/llm"
)

// training is OpenAI's jobs that train a model. A job is billed when it ends: for the tokens of its file in each epoch,
// or for half of them if it is cancelled when it runs.
type training struct{ single }

func (training) read(c *Call) error {
	if len(c.files["training_file"]) != 1 {
		return errors.New("training_file: the id of a file is required")
	}
	tokens := int64(0)
	for line := range bytes.Lines(c.files["training_file"][0]) {
		var example struct {
			Messages []struct{ Role, Content string } `json:"messages"`
		}
		if json.Unmarshal(line, &example) != nil {
			return errors.New("training_file: it must have an example in each line")
		}
		for _, m := range example.Messages {
			tokens += int64(Count(m.Role) + Count(m.Content))
		}
	}
	epochs := c.fields.in("hyperparameters").number("n_epochs")
	if method := c.fields.in("method"); method != nil {
		epochs = method.in(method.text("type")).in("hyperparameters").number("n_epochs")
	}
	c.units[llm.TrainedTokens] = tokens * int64(min(max(cmp.Or(epochs, 3), 1), math.MaxInt16))
	return nil
}

func (f training) whole(a *answer) object {
	o := f.standing(a, "succeeded")
	o["trained_tokens"], o["fine_tuned_model"] = a.units[llm.TrainedTokens], "ft:"+a.Model+":mock::1"
	return o
}

func (training) standing(a *answer, status string) object {
	o := object{
		"id": a.id("ftjob-"), "object": "fine_tuning.job", "model": a.Model, "created_at": a.at.Unix(), "finished_at": nil,
		"status": status, "trained_tokens": nil, "fine_tuned_model": nil, "organization_id": "org-mock", "result_files": []string{},
		"error": object{}, "hyperparameters": object{"n_epochs": "auto"}, "seed": 1, "integrations": []object{},
		"training_file": a.fields.text("training_file"), "validation_file": nil,
	}
	switch status {
	case "queued":
		o["status"] = "validating_files"
	case "in_progress":
		o["status"] = "running"
	case "cancelled":
		o["trained_tokens"] = a.units[llm.TrainedTokens]
	}
	return o
}

// cancelled returns what a job is billed for that was cancelled in a status.
func (training) cancelled(a *answer, status string) {
	if a.units[llm.TrainedTokens] /= 2; status == "queued" {
		a.units[llm.TrainedTokens] = 0
	}
}
