package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/webhook"
)

// A receiver checks the signature of each message before it believes it.
func Example() {
	secret, err := webhook.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		panic(err)
	}
	said := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil || secret.Verify(r.Header, body, time.Now()) != nil {
			http.Error(w, "not signed", http.StatusUnauthorized)
			return
		}
		var m webhook.Message
		if err := json.Unmarshal(body, &m); err == nil && m.Type == webhook.Type {
			said <- fmt.Sprintf("%s has used %s of %s %s: %d%%", m.Data.Owner, m.Data.Used, m.Data.Max, m.Data.Unit, m.Data.Percent)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()

	sender, err := webhook.New(webhook.Config{URL: receiver.URL, Secret: secret})
	if err != nil {
		panic(err)
	}
	limiter, err := project.NewWithConfig(project.Config{
		Default:    &project.Limit{RequestsPerDay: 10},
		Thresholds: []int{80},
		Observer:   sender,
	})
	if err != nil {
		panic(err)
	}
	_, err = limiter.Spend(context.Background(), project.Call{Project: "acme", Requests: 8})
	if err != nil {
		panic(err)
	}
	fmt.Println(<-said)
	limiter.Close()
	sender.Close(context.Background())
	// Output: acme has used 8 of 10 requests: 80%
}
