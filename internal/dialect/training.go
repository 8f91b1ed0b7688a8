package dialect

import (
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// How often a model can be trained with a file. OpenAI documents from 1 to 50 epochs; without a number, or with "auto",
// it chooses one itself.
const mostEpochs = 50

// aboutTraining is for a job that trains a model with a file. It is billed for the tokens of the file in each epoch.
var aboutTraining = &about{
	unit: llm.TrainedTokens, count: trainingTokens, times: trainingEpochs,
	at: func(path string, fields []byte) ([]string, bool) {
		file, _ := objectOf(fields)["training_file"].(string)
		before, ok := cutFolded(path, "/fine_tuning/jobs")
		if !ok || !storedID.MatchString(file) {
			return nil, true
		}
		return []string{before + "/files/" + file + "/content"}, true
	},
}

// cutFolded returns a path without its end, whose case does not matter.
func cutFolded(path, end string) (before string, ok bool) {
	at := len(path) - len(end)
	if at < 0 || !strings.EqualFold(path[at:], end) {
		return path, false
	}
	return path[:at], true
}

// trainingTokens returns the most tokens of a line of a training file, which is like the body of a chat completion. It
// is unknown if the provider fetches a part of it.
func trainingTokens(e Endpoint, line []byte) int64 {
	e.API = Chat
	q, err := e.Read(line)
	most, ok := q.mostInput(llm.Maxima{})
	if err != nil || !ok {
		return -1
	}
	return int64(most)
}

// trainingEpochs returns how often a job trains with each token of its file at most. Of two outputs of which one is
// preferred, each follows the same prompt. Reinforcement is billed by the hour, which nothing in the request bounds.
func trainingEpochs(fields []byte) int64 {
	body := objectOf(fields)
	if body == nil {
		return -1
	}
	epochs, ok := epochsIn(body)
	method, has := body["method"].(map[string]any)
	if !has {
		if body["method"] != nil {
			return -1
		}
		return epochs
	}
	kind, _ := method["type"].(string)
	times := map[string]int64{"supervised": 1, "dpo": 2}[kind]
	if times == 0 {
		return -1
	}
	own, _ := method[kind].(map[string]any)
	if n, _ := epochsIn(own); ok { // nobody knows which of the two counts
		epochs = max(epochs, n)
	} else {
		epochs = n
	}
	return times * epochs
}

// epochsIn returns the epochs in the hyperparameters of an object, and whether it has a number of them.
func epochsIn(object map[string]any) (n int64, ok bool) {
	parameters, _ := object["hyperparameters"].(map[string]any)
	if n, ok = wholeNumber(parameters["n_epochs"]); ok {
		return n, true
	}
	return mostEpochs, false
}
