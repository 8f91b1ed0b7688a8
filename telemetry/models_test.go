package telemetry

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

func TestModelCollector(t *testing.T) {
	rl := telemetrytest.NewLimiter(t, ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{
		"a":    {MaxRPM: 1, MaxTPM: 1000, MaxRPD: 50},
		"b":    {MaxInputTPM: 100, MaxOutputTPM: 200, MaxTPD: 5000, MaxConcurrent: 2},
		"free": {},
	}})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewModelCollector(rl))
	check := func(when string, want map[string]float64) {
		t.Helper()
		testkit.Equal(t, when, want, telemetrytest.Gathered(t, registry))
	}
	check("at first", map[string]float64{
		"ratelimit_model_paused_seconds{model=a}": 0, "ratelimit_model_paused_seconds{model=b}": 0, "ratelimit_model_paused_seconds{model=free}": 0,
		"ratelimit_model_limit{dimension=max_rpm,model=a}": 1, "ratelimit_model_used{dimension=max_rpm,model=a}": 0,
		"ratelimit_model_limit{dimension=max_tpm,model=a}": 1000, "ratelimit_model_used{dimension=max_tpm,model=a}": 0,
		"ratelimit_model_limit{dimension=max_rpd,model=a}": 50, "ratelimit_model_used{dimension=max_rpd,model=a}": 0,
		"ratelimit_model_limit{dimension=max_input_tpm,model=b}": 100, "ratelimit_model_used{dimension=max_input_tpm,model=b}": 0,
		"ratelimit_model_limit{dimension=max_output_tpm,model=b}": 200, "ratelimit_model_used{dimension=max_output_tpm,model=b}": 0,
		"ratelimit_model_limit{dimension=max_tpd,model=b}": 5000, "ratelimit_model_used{dimension=max_tpd,model=b}": 0,
		"ratelimit_model_limit{dimension=max_concurrent,model=b}": 2, "ratelimit_model_used{dimension=max_concurrent,model=b}": 0,
	})

	rl.RecordUsage("a", 300, 400)
	rl.RecordUsage("a", 300, 400)
	rl.RecordUsage("free", 300, 400)
	rl.RecordUsage("made-up", 300, 400)
	if _, d := rl.TryAcquireTokens("b", ratelimit.Tokens{Input: 60, Output: 70}); !d.Allowed {
		t.Fatalf("denied: %+v", d)
	}
	check("when more than all of a is used", map[string]float64{
		"ratelimit_model_paused_seconds{model=a}": 0, "ratelimit_model_paused_seconds{model=b}": 0, "ratelimit_model_paused_seconds{model=free}": 0,
		"ratelimit_model_limit{dimension=max_rpm,model=a}": 1, "ratelimit_model_used{dimension=max_rpm,model=a}": 2,
		"ratelimit_model_limit{dimension=max_tpm,model=a}": 1000, "ratelimit_model_used{dimension=max_tpm,model=a}": 1400,
		"ratelimit_model_limit{dimension=max_rpd,model=a}": 50, "ratelimit_model_used{dimension=max_rpd,model=a}": 2,
		"ratelimit_model_limit{dimension=max_input_tpm,model=b}": 100, "ratelimit_model_used{dimension=max_input_tpm,model=b}": 60,
		"ratelimit_model_limit{dimension=max_output_tpm,model=b}": 200, "ratelimit_model_used{dimension=max_output_tpm,model=b}": 70,
		"ratelimit_model_limit{dimension=max_tpd,model=b}": 5000, "ratelimit_model_used{dimension=max_tpd,model=b}": 130,
		"ratelimit_model_limit{dimension=max_concurrent,model=b}": 2, "ratelimit_model_used{dimension=max_concurrent,model=b}": 1,
	})
}

// A pause is shown for as long as it lasts, whatever else limits the model.
func TestModelCollectorPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := telemetrytest.NewLimiter(t, ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{"a": {MaxRPD: 2}, "free": {}}})
		for range 2 {
			rl.RecordUsage("a", 1, 1) // all of it
		}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(NewModelCollector(rl))
		for _, model := range []string{"a", "free", "made-up"} {
			rl.Heed(t.Context(), model, llm.Limits{Cause: llm.RateLimited, Pause: 90 * time.Second})
		}
		for _, step := range []struct {
			wait time.Duration
			want float64
		}{{0, 90}, {30500 * time.Millisecond, 59.5}, {59 * time.Second, 0.5}, {500 * time.Millisecond, 0}, {time.Hour, 0}} {
			time.Sleep(step.wait)
			want := map[string]float64{
				"ratelimit_model_paused_seconds{model=a}": step.want, "ratelimit_model_paused_seconds{model=free}": step.want,
				"ratelimit_model_limit{dimension=max_rpd,model=a}": 2, "ratelimit_model_used{dimension=max_rpd,model=a}": 2,
			}
			testkit.Equal(t, fmt.Sprintf("%v later", step.wait), want, telemetrytest.Gathered(t, registry))
		}
	})
}

// While the store is lost it is unknown what is used, so the metric is missing and not 0.
func TestModelCollectorStoreLost(t *testing.T) {
	memory := store.NewMemory()
	defer memory.Close()
	lossy := &lossyStore{Memory: memory}
	rl, err := ratelimit.NewWithStore(lossy, ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{"a": {MaxRPM: 10}}})
	if err != nil {
		t.Fatal(err)
	}
	defer rl.Close()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewModelCollector(rl))
	rl.RecordUsage("a", 0, 0)
	for _, step := range []struct {
		lost bool
		want map[string]float64
	}{
		{false, map[string]float64{"ratelimit_model_paused_seconds{model=a}": 0, "ratelimit_model_limit{dimension=max_rpm,model=a}": 10, "ratelimit_model_used{dimension=max_rpm,model=a}": 1}},
		{true, map[string]float64{"ratelimit_model_paused_seconds{model=a}": 0, "ratelimit_model_limit{dimension=max_rpm,model=a}": 10}},
		{false, map[string]float64{"ratelimit_model_paused_seconds{model=a}": 0, "ratelimit_model_limit{dimension=max_rpm,model=a}": 10, "ratelimit_model_used{dimension=max_rpm,model=a}": 1}},
	} {
		lossy.lost = step.lost
		testkit.Equal(t, fmt.Sprintf("lost: %v", step.lost), step.want, telemetrytest.Gathered(t, registry))
	}
}

// lossyStore is a store that can be lost.
type lossyStore struct {
	*store.Memory
	lost bool
}

func (s *lossyStore) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	if s.lost {
		return nil, telemetrytest.ErrGone
	}
	return s.Memory.Peek(ctx, charges)
}

func (s *lossyStore) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	if s.lost {
		return nil, 0, telemetrytest.ErrGone
	}
	return s.Memory.Read(ctx, keys...)
}
