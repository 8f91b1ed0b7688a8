package gateway

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// trainingFile has ten examples.
var trainingFile = strings.Repeat(`{"messages":[{"role":"user","content":"what is one and one?"},{"role":"assistant","content":"two"}]}`+"\n", 10)

const jobs = "/openai/v1/fine_tuning/jobs"

// train begins a job of a project that trains with a file of the mock's, with more fields.
func (r *rig) train(t testing.TB, project, file, more string) answer {
	t.Helper()
	return r.post(t, jobs, `{"model":"gpt-4o-mini-2024-07-18","training_file":"`+file+`"`+more+`}`, "X-Project-ID", project)
}

const threeEpochs = `,"method":{"type":"supervised","supervised":{"hyperparameters":{"n_epochs":3}}}`

// trainedBill is what the mock bills for training, at $3 for a million tokens.
func trainedBill(r *rig) price.Amount {
	return price.Amount(r.provider.Totals()["gpt-4o-mini-2024-07-18"].Units[llm.TrainedTokens] * 3_000)
}

// A job that trains a model is charged the most that it can cost before, and what it has cost after it has ended, whoever
// asks for it: a client, that of another project, or the gateway itself.
func TestTraining(t *testing.T) {
	t.Setenv("KEY", "sk-own")
	get := func(r *rig, path, project string) string {
		t.Helper()
		return r.do(t, "GET", path, "", "X-Project-ID", project).body
	}
	for name, end := range map[string]func(r *rig, id string){
		"a client": func(r *rig, id string) { get(r, jobs+"/"+id, "acme"); get(r, jobs+"/"+id, "acme") },
		"another project": func(r *rig, id string) {
			get(r, jobs+"/"+id, "other")
			get(r, "/openai/V1/fine_tuning/Jobs/"+id, "other")
		},
		"the gateway": func(r *rig, id string) {
			for minutes := range 10 {
				r.batches.poll(t.Context(), time.Now().Add(time.Duration(minutes)*time.Minute))
			}
		},
		"cancelled early": func(r *rig, id string) { r.post(t, jobs+"/"+id+"/cancel", "", "X-Project-ID", "acme") },
		"cancelled": func(r *rig, id string) {
			get(r, jobs+"/"+id, "acme")
			r.post(t, jobs+"/"+id+"/cancel", "", "X-Project-ID", "acme")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "providers: {openai: {base_url: MOCK, key: {env: KEY}}}\nprojects: {acme: {dollars: 1, trained_tokens_per_day: 10_000}, other: {dollars: 1}}\n", mockprovider.Config{})
			a := r.train(t, "acme", r.uploadFile(t, trainingFile, "fine-tune"), threeEpochs)
			reserved := spentOf(t, r, "acme")
			if most := price.Amount(len(trainingFile) * 3 * 3_000); a.status != 200 || reserved < most || reserved > 2*most {
				t.Fatalf("%d %s: %v are reserved, want %v and a little more", a.status, a.body, reserved, most)
			}
			id := field(t, a, "id")
			if list := get(r, jobs+"/"+id+"/events", "acme"); spentOf(t, r, "acme") != reserved {
				t.Errorf("the events of the job have settled it: %s", list)
			}
			end(r, id)
			want := trainedBill(r)
			if got := spentOf(t, r, "acme"); got != want || (want == 0) != (name == "cancelled early") || !r.noBatches(t) {
				t.Errorf("%v are charged, want %v", got, want)
			}
			sum := r.usage(t, books.Query{Project: "acme"}).Total
			if sum[books.Nanodollars] != int64(want) || sum[books.Beside+llm.TrainedTokens]*3_000 != int64(want) || sum[books.Input] != 0 {
				t.Errorf("the books have %v, want %v", sum, want)
			}
			d, err := r.Projects().Peek(t.Context(), "acme")
			if err != nil || window(t, d, "trained_tokens_per_day").Remaining != 10_000-int64(want)/3_000 {
				t.Errorf("%+v, %v", d.Windows(), err)
			}
		})
	}
}

// However many jobs are begun at once, a budget for ten of them lets ten pass, on every store.
func TestTrainingAtOnce(t *testing.T) {
	const yaml = "providers: {openai: {base_url: MOCK}}\nprojects: {acme: {dollars: BUDGET, max_wait: 0s}}\n"
	rich := newRig(t, strings.Replace(yaml, "BUDGET", "1000", 1), mockprovider.Config{})
	rich.train(t, "acme", rich.uploadFile(t, trainingFile, "fine-tune"), threeEpochs)
	budget := 10 * spentOf(t, rich, "acme")
	for _, state := range []string{"", "state: " + filepath.Join(t.TempDir(), "state.db") + "\n", "state: " + redistest.New(t).PatientURL() + "\n"} {
		r := newRig(t, state+strings.Replace(yaml, "BUDGET", budget.Decimal(), 1), mockprovider.Config{})
		file := r.uploadFile(t, trainingFile, "fine-tune")
		var passed, lost atomic.Int64
		var ids sync.Map
		var all sync.WaitGroup
		for range testkit.Rounds(50, 300) {
			all.Go(func() {
				for {
					switch a := r.train(t, "acme", file, threeEpochs); {
					case a.status == http.StatusOK:
						passed.Add(1)
						ids.Store(field(t, a, "id"), true)
					case a.status == http.StatusServiceUnavailable && strings.Contains(a.body, "are being read"): // two of a project at a time
						continue
					case a.status == http.StatusServiceUnavailable:
						lost.Add(1)
					case a.status != http.StatusPaymentRequired && a.status != http.StatusTooManyRequests:
						t.Errorf("%d %s", a.status, a.body)
					}
					return
				}
			})
		}
		all.Wait()
		r.settled(t)
		if n := passed.Load(); n > 10 || n < 10 && lost.Load() == 0 {
			t.Errorf("%s: %d jobs have passed, and %d were not decided", state, n, lost.Load())
		}
		for id := range ids.Range {
			for range 2 {
				r.do(t, "GET", jobs+"/"+id.(string), "", "X-Project-ID", "acme")
			}
		}
		if got, want := spentOf(t, r, "acme"), trainedBill(r); got != want || want == 0 {
			t.Errorf("%s: %v are charged, want %v", state, got, want)
		}
	}
}

// A job whose cost nobody knows, or that may cost more than there is, is not begun under a budget. Nothing is charged.
func TestTrainingThatIsNotBegun(t *testing.T) {
	r := newRig(t, "providers: {openai: {base_url: MOCK}}\nprojects: {acme: {dollars: 1}, free: {requests_per_day: 100}}\n", mockprovider.Config{})
	file := r.uploadFile(t, trainingFile, "fine-tune")
	odd := r.uploadFile(t, "no JSON\n", "fine-tune")
	for _, c := range []struct {
		file, more string
		status     int
		text       string
	}{
		{file, `,"hyperparameters":{"n_epochs":1000000000}`, http.StatusBadRequest, "may cost up to"},
		{file, `,"hyperparameters":{"n_epochs":1e300}`, http.StatusBadRequest, "may cost up to"},
		{file, `,"hyperparameters":{"n_epochs":1},"hyperparameters":{"n_epochs":9}`, http.StatusForbidden, "endpoint_prices"},
		{file, `,"method":{"type":"reinforcement"}`, http.StatusForbidden, "nothing bounds how many trained tokens it uses: the configuration must have a price for the whole request in endpoint_prices"},
		{odd, "", http.StatusForbidden, "endpoint_prices"},
		{file + `","Training_file":"` + file, "", http.StatusForbidden, "endpoint_prices"},
		{"../files/" + file, "", http.StatusForbidden, "endpoint_prices"},
		{"file-none", "", http.StatusBadRequest, "the provider answers with 404"},
	} {
		a := r.train(t, "acme", c.file, c.more)
		if a.status != c.status || !strings.Contains(a.body, c.text) || spentOf(t, r, "acme") != 0 {
			t.Errorf("%s %s: %d %s, want %d with %q", c.file, c.more, a.status, a.body, c.status, c.text)
		}
	}
	if n := len(r.provider.Totals()); n != 0 {
		t.Errorf("a job was begun: %v", r.provider.Totals())
	}
	if a := r.train(t, "free", file, `,"method":{"type":"reinforcement"}`); a.status != 200 {
		t.Errorf("without a budget: %d %s", a.status, a.body)
	}
}

// A job that has ended without saying how many tokens it was trained with stays charged the most that it can cost, even if
// the answer that it has begun has a number. One of a project without anything left is refused before its file is read.
func TestTrainingThatSaysNothing(t *testing.T) {
	files := atomic.Int64{}
	r := newRigBefore(t, "providers: {openai: {base_url: MOCK}}\nprojects: {acme: {dollars: 1}, poor: {dollars: 0.000001}}\n", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case strings.HasSuffix(q.URL.Path, "/content"):
			files.Add(1)
			fmt.Fprint(w, trainingFile)
		case q.Method == http.MethodGet:
			fmt.Fprint(w, `{"id":"ftjob-1","status":"failed","trained_tokens":null}`)
		default:
			fmt.Fprint(w, `{"id":"ftjob-1","status":"validating_files","trained_tokens":0}`)
		}
	}))
	r.train(t, "acme", "file-1", threeEpochs)
	reserved := spentOf(t, r, "acme")
	r.do(t, "GET", jobs+"/ftjob-1", "", "X-Project-ID", "acme")
	if got := spentOf(t, r, "acme"); got != reserved || got == 0 {
		t.Errorf("%v are charged, want %v", got, reserved)
	}
	read := files.Load()
	if a := r.post(t, "/openai/v1/images/generations", `{"model":"dall-e-2","prompt":"x"}`, "X-Project-ID", "poor"); a.status == 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := r.train(t, "poor", "file-1", threeEpochs); a.status == 200 || files.Load() > read+1 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// The provider is not asked about a stored video or cache for a project that has nothing left.
func TestNothingIsFetchedForAProjectWithNothingLeft(t *testing.T) {
	for _, limit := range []string{"requests_per_day: 1", "dollars: 0.3"} {
		fetched := atomic.Int64{}
		r := newRigBefore(t, "providers: {openai: {base_url: MOCK}, gemini: {base_url: MOCK}}\nprices: {m: {request: 0.3}}\nprojects: {acme: {"+limit+"}}\n", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Method == http.MethodGet {
				fetched.Add(1)
				fmt.Fprint(w, `{"id":"video_1","object":"video","model":"sora-2","seconds":"8","size":"720x1280"}`)
				return
			}
			fmt.Fprint(w, `{"usage":{"prompt_tokens":1,"completion_tokens":0,"total_tokens":1},"choices":[{"message":{"content":""}}]}`)
		}))
		r.post(t, "/openai/v1/chat/completions", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, "X-Project-ID", "acme")
		for method, path := range map[string]string{"POST": "/openai/v1/videos/video_1/remix", "PATCH": "/gemini/v1beta/cachedContents/c"} {
			if method == "PATCH" && strings.HasPrefix(limit, "dollars") { // it may end a cache earlier, which costs nothing
				continue
			}
			a := r.do(t, method, path, `{"prompt":"a dog","ttl":"60s"}`, "X-Project-ID", "acme", "Content-Type", "application/json")
			if a.status == 200 || fetched.Load() > 0 {
				t.Errorf("%s, %s: %d %s; %d are fetched", limit, path, a.status, a.body, fetched.Load())
			}
		}
	}
}
