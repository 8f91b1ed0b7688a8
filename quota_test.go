package ratelimit

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

func TestDefaultQuotas(t *testing.T) {
	tests := []struct {
		provider      Provider
		model         string
		rpm, tpm, rpd int
	}{
		{"gemini", "gemini-3-pro-preview", 150, 1_000_000, 1000},
		{"gemini", "gemini-3-flash-preview", 150, 1_000_000, 1000},
		{"gemini", "gemini-2.5-pro", 150, 1_000_000, 1000},
		{"gemini", "gemini-2.0-flash", 150, 1_000_000, 0},
		{"gemini", "gemini-2.0-flash-lite", 0, 0, 0},
		{"openai", "gpt-4o", 500, 30_000, 0},
		{"openai", "gpt-4o-mini", 500, 200_000, 0},
		{"openai", "gpt-4-turbo", 500, 30_000, 0},
		{"openai", "o1", 500, 30_000, 0},
		{"openai", "o1-mini", 500, 200_000, 0},
		{"openai", "o3-mini", 500, 200_000, 0},
		{"anthropic", "claude-opus-4", 50, 40_000, 0},
		{"anthropic", "claude-sonnet-4", 50, 40_000, 0},
		{"anthropic", "claude-haiku-3.5", 50, 50_000, 0},
	}
	want := map[Provider]ProviderProfile{}
	for _, provider := range []Provider{ProviderGemini, ProviderOpenAI, ProviderAnthropic, ProviderLocal} {
		want[provider] = ProviderProfile{provider, map[string]ModelQuota{}}
	}
	for _, tt := range tests {
		want[tt.provider].Models[tt.model] = ModelQuota{MaxRPM: tt.rpm, MaxTPM: tt.tpm, MaxRPD: tt.rpd}
	}
	testkit.Equal(t, "DefaultProfiles", want, DefaultProfiles())
	clear(DefaultProfiles()[ProviderGemini].Models)
	if got := DefaultProfiles(); !reflect.DeepEqual(got, want) {
		t.Error("DefaultProfiles is not a copy")
	}
	for provider, profile := range want {
		rl := memConfigured(t, Config{Providers: []Provider{provider}})
		if got := rl.Quotas(); !maps.Equal(got, profile.Models) {
			t.Errorf("the quotas of %s are %v; want %v", provider, got, profile.Models)
		}
	}
}

func TestProviderNames(t *testing.T) {
	got := []Provider{ProviderGemini, ProviderOpenAI, ProviderAnthropic, ProviderLocal}
	if want := []Provider{"gemini", "openai", "anthropic", "local"}; !reflect.DeepEqual(got, want) {
		t.Errorf("providers %q; want %q", got, want)
	}
}

func TestQuotaResolution(t *testing.T) {
	profiles := DefaultProfiles()
	own := map[string]ModelQuota{"own": {MaxRPM: 3}}
	over := map[string]ModelQuota{"gpt-4o": {MaxTPD: 5}}
	union := func(all ...map[string]ModelQuota) map[string]ModelQuota {
		sum := map[string]ModelQuota{}
		for _, quotas := range all {
			maps.Copy(sum, quotas)
		}
		return sum
	}
	gemini, openai, anthropic := profiles[ProviderGemini].Models, profiles[ProviderOpenAI].Models, profiles[ProviderAnthropic].Models
	tests := []struct {
		name string
		cfg  Config
		want map[string]ModelQuota
	}{
		{"nothing is Gemini", Config{}, gemini},
		{"empty is nothing", Config{Providers: []Provider{}, Quotas: map[string]ModelQuota{}}, gemini},
		{"no defaults", Config{NoDefaults: true}, union()},
		{"no defaults beside quotas", Config{NoDefaults: true, Quotas: own}, own},
		{"no defaults beside a provider", Config{NoDefaults: true, Providers: []Provider{ProviderOpenAI}}, openai},
		{"the YAML backend by name", Config{Backend: BackendYAML}, gemini},
		{"quotas alone", Config{Quotas: own}, own},
		{"a provider alone", Config{Providers: []Provider{ProviderOpenAI}}, openai},
		{"two providers", Config{Providers: []Provider{ProviderOpenAI, ProviderAnthropic}}, union(openai, anthropic)},
		{"a provider twice", Config{Providers: []Provider{ProviderOpenAI, ProviderOpenAI}}, openai},
		{"one without quotas", Config{Providers: []Provider{ProviderLocal}}, union()},
		{"quotas beside a provider", Config{Providers: []Provider{ProviderOpenAI}, Quotas: own}, union(openai, own)},
		{"quotas over a provider", Config{Providers: []Provider{ProviderOpenAI}, Quotas: over}, union(openai, over)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := memConfigured(t, tt.cfg).Quotas(); !maps.Equal(got, tt.want) {
				t.Errorf("quotas %v; want %v", got, tt.want)
			}
		})
	}
}

func TestNewIsGeminiInTheHomeDirectory(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	rl, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(rl.Quotas(), DefaultProfiles()[ProviderGemini].Models) {
		t.Errorf("New has quotas %v; want Gemini's", rl.Quotas())
	}
	if files, err := os.ReadDir(home); err != nil || len(files) > 0 {
		t.Errorf("New has made %v, %v; want nothing", files, err)
	}
	if err := rl.Persist(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(home, ".core", "ratelimits.yaml")); err != nil {
		t.Error(err)
	}
	if err := rl.Close(); err != nil {
		t.Error(err)
	}
}

// TestNewWithoutHomeDirectory: only Load and Persist, which need the file, need a home directory.
func TestNewWithoutHomeDirectory(t *testing.T) {
	t.Setenv("HOME", "")
	rl, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if _, d := rl.TryAcquire("gemini-2.5-pro", 1); !d.Allowed {
		t.Errorf("%+v; want it allowed", d)
	}
	memRefused(t, rl.Load(), "home")
	memRefused(t, rl.Persist(), "home")
}

func TestConfigIsCopied(t *testing.T) {
	quotas := map[string]ModelQuota{"a": {MaxRPM: 1}}
	providers := []Provider{ProviderOpenAI}
	rl := memConfigured(t, Config{Quotas: quotas, Providers: providers})
	want := rl.Quotas()
	quotas["a"], quotas["b"], providers[0] = ModelQuota{}, ModelQuota{}, ProviderGemini
	if got := rl.Quotas(); !maps.Equal(got, want) {
		t.Errorf("quotas %v; want %v as before", got, want)
	}
	clear(rl.Quotas())
	if got := rl.Quotas(); !maps.Equal(got, want) {
		t.Errorf("Quotas is not a copy: %v", got)
	}
}

// badQuotas has quotas that must be refused, each with a word of the error.
var badQuotas = []struct {
	name  string
	quota ModelQuota
	says  string
}{
	{"negative RPM", ModelQuota{MaxRPM: -1}, "max_rpm"},
	{"negative TPM", ModelQuota{MaxTPM: -1}, "max_tpm"},
	{"negative RPD", ModelQuota{MaxRPD: -5}, "max_rpd"},
	{"negative input TPM", ModelQuota{MaxInputTPM: -1}, "max_input_tpm"},
	{"negative output TPM", ModelQuota{MaxOutputTPM: -1}, "max_output_tpm"},
	{"negative TPD", ModelQuota{MaxTPD: -1}, "max_tpd"},
	{"negative concurrency", ModelQuota{MaxConcurrent: -1}, "max_concurrent"},
	{"least RPM", ModelQuota{MaxRPM: math.MinInt}, "max_rpm"},
	{"huge RPM", ModelQuota{MaxRPM: state.MaxQuota + 1}, "max_rpm"},
	{"huge TPM", ModelQuota{MaxTPM: state.MaxQuota + 1}, "max_tpm"},
	{"huge RPD", ModelQuota{MaxRPD: math.MaxInt}, "max_rpd"},
	{"huge input TPM", ModelQuota{MaxInputTPM: math.MaxInt}, "max_input_tpm"},
	{"huge output TPM", ModelQuota{MaxOutputTPM: math.MaxInt}, "max_output_tpm"},
	{"huge TPD", ModelQuota{MaxTPD: math.MaxInt}, "max_tpd"},
	{"huge concurrency", ModelQuota{MaxConcurrent: math.MaxInt}, "max_concurrent"},
	{"one good, one bad", ModelQuota{MaxRPM: 5, MaxTPM: -1}, "max_tpm"},
	{"a zone alone", ModelQuota{DayResetsAt: "America/Los_Angeles"}, "day_resets_at"},
	{"a time alone", ModelQuota{DayResetsAt: "00:00"}, "day_resets_at"},
	{"blanks", ModelQuota{DayResetsAt: "  "}, "day_resets_at"},
	{"an unknown zone", ModelQuota{DayResetsAt: "00:00 Mars/Olympus"}, "Mars/Olympus"},
	{"a path for a zone", ModelQuota{DayResetsAt: "00:00 ../../etc/passwd"}, "day_resets_at"},
	{"a time that is none", ModelQuota{DayResetsAt: "24:00 UTC"}, "24:00"},
	{"seconds", ModelQuota{DayResetsAt: "00:00:00 UTC"}, "day_resets_at"},
	{"a second time", ModelQuota{DayResetsAt: "00:00 UTC at 01:00 UTC"}, "day_resets_at"},
	{"something after the zone", ModelQuota{DayResetsAt: "00:00 UTC daily"}, "day_resets_at"},
	{"an algorithm after the zone", ModelQuota{DayResetsAt: "00:00 UTC log"}, "day_resets_at"},
	{"a burst after the zone", ModelQuota{DayResetsAt: "00:00 UTC burst 5"}, "day_resets_at"},
	{"a burst of one after the zone", ModelQuota{MaxRPD: 10, DayResetsAt: "00:00 UTC burst 1"}, "day_resets_at"},
	{"something after a line break", ModelQuota{DayResetsAt: "00:00 UTC\nburst 1"}, "day_resets_at"},
}

// badNames has names that no model may have.
var badNames = []string{
	"", "a\nb", "a\x00", "\x7f", "a\tb", "\xff\xfe", "a\u0085b", strings.Repeat("x", 513), strings.Repeat("é", 257),
}

// oddNames has unusual names that a model may have.
var oddNames = []string{
	"m", " ", "a b", "a/b", "models/gemini-2.5-pro", "ü", "模型", "🙂", "a:b#c", `"`, "'", "null", "~", "-", strings.Repeat("x", 512), "a%2Fb", "..",
}

// memRefused fails the test unless an error is one of invalid input.
func memRefused(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || strings.Count(err.Error(), "ratelimit: ") != 1 || !strings.Contains(err.Error(), says) {
		t.Errorf("the error is %v; want one that says %q", err, says)
	}
}

func TestBadQuotas(t *testing.T) {
	for _, tt := range badQuotas {
		t.Run(tt.name, func(t *testing.T) {
			memRefused(t, tt.quota.Validate(), tt.says)
			rl, err := NewWithConfig(Config{FilePath: "f", Quotas: map[string]ModelQuota{"bad": tt.quota, "good": {MaxRPM: 1}}})
			memRefused(t, err, tt.says)
			if rl != nil {
				t.Error("NewWithConfig returned a limiter beside the error")
			}
			rl = memLimiter(t, ModelQuota{MaxRPM: 5, MaxRPD: 7})
			memTake(t, rl, 3)
			before, stats := rl.Quotas(), rl.Stats(memModel)
			memRefused(t, rl.SetQuota(memModel, tt.quota), tt.says)
			memRefused(t, rl.SetQuota("other", tt.quota), "other")
			if !maps.Equal(rl.Quotas(), before) || rl.Stats(memModel).RPM != 1 || rl.Stats(memModel).MaxRPD != stats.MaxRPD {
				t.Errorf("it has changed to %v, %+v", rl.Quotas(), rl.Stats(memModel))
			}
		})
	}
}

func TestGoodQuotas(t *testing.T) {
	for _, quota := range []ModelQuota{
		{},
		{MaxRPM: 1, MaxTPM: 1, MaxRPD: 1, MaxInputTPM: 1, MaxOutputTPM: 1, MaxTPD: 1, MaxConcurrent: 1},
		{MaxRPM: state.MaxQuota, MaxTPM: state.MaxQuota, MaxRPD: state.MaxQuota, MaxInputTPM: state.MaxQuota, MaxOutputTPM: state.MaxQuota, MaxTPD: state.MaxQuota, MaxConcurrent: state.MaxQuota},
		{MaxRPD: 1, DayResetsAt: "00:00 America/Los_Angeles"},
		{MaxRPD: 1, DayResetsAt: "23:59 UTC"},
		{MaxTPD: 1, DayResetsAt: "06:30 Asia/Kolkata"},
		{DayResetsAt: "00:00 Europe/Berlin"},
	} {
		if err := quota.Validate(); err != nil {
			t.Errorf("%+v: %v", quota, err)
		}
		rl := memLimiter(t, quota)
		if got := rl.Quotas()[memModel]; got != quota {
			t.Errorf("the quota is %+v; want %+v", got, quota)
		}
		if d := rl.Decide(memModel, 1); !d.Allowed {
			t.Errorf("%+v denies the first request: %+v", quota, d)
		}
	}
}

func TestBadNames(t *testing.T) {
	for _, name := range badNames {
		_, err := NewWithConfig(Config{FilePath: "f", Quotas: map[string]ModelQuota{name: {MaxRPM: 1}}})
		memRefused(t, err, "name")
		rl := memLimiter(t, ModelQuota{MaxRPM: 1})
		before := rl.Quotas()
		memRefused(t, rl.SetQuota(name, ModelQuota{MaxRPM: 1}), "name")
		if !maps.Equal(rl.Quotas(), before) {
			t.Errorf("%.20q: the quotas have become %v", name, rl.Quotas())
		}
		rl.RecordUsage(name, 1, 1)
		res, d := rl.TryAcquire(name, 5)
		if !d.Allowed || d.Code != DecisionUnknownModel {
			t.Errorf("%.20q: %+v", name, d)
		}
		res.Commit(1, 1)
		rl.Reset(name)
		if s := rl.Stats(name); s != (ModelStats{}) {
			t.Errorf("%.20q: %+v", name, s)
		}
		if len(rl.State()) > 0 || len(rl.AllStats()) != 1 {
			t.Errorf("%.20q has left %v", name, rl.State())
		}
	}
	for _, name := range oddNames {
		rl := memConfigured(t, Config{Quotas: map[string]ModelQuota{name: {MaxRPM: 1}}})
		if _, d := rl.TryAcquire(name, 1); !d.Allowed || d.Code != DecisionAllowed {
			t.Errorf("%.20q: %+v", name, d)
		}
		rl.RecordUsage(name+"", 1, 1)
		if s := rl.Stats(name); s.RPM != 2 || s.MaxRPM != 1 {
			t.Errorf("%.20q: %+v", name, s)
		}
	}
}

func TestUnknownProviderAndBackend(t *testing.T) {
	for _, provider := range []Provider{"", "Gemini", "mistral", "gemini "} {
		rl, err := NewWithConfig(Config{FilePath: "f", Providers: []Provider{ProviderOpenAI, provider}})
		memRefused(t, err, string(provider))
		if rl != nil {
			t.Errorf("%q made a limiter", provider)
		}
		rl = memLimiter(t, ModelQuota{MaxRPM: 5})
		before := rl.Quotas()
		err = rl.AddProvider(provider)
		memRefused(t, err, "anthropic")
		if !maps.Equal(rl.Quotas(), before) {
			t.Errorf("%q changed the quotas to %v", provider, rl.Quotas())
		}
	}
	for _, backend := range []string{"YAML", "Redis", " yaml", "sqlite3"} {
		rl, err := NewWithConfig(Config{FilePath: filepath.Join(t.TempDir(), "f"), Backend: backend})
		memRefused(t, err, backend)
		if rl != nil {
			t.Errorf("%q made a limiter", backend)
		}
	}
}

func TestSQLiteBackendByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	rl, err := NewWithConfig(Config{FilePath: path, Backend: BackendSQLite, Quotas: map[string]ModelQuota{memModel: {MaxRPM: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if got := rl.Quotas()[memModel]; got.MaxRPM != 1 {
		t.Errorf("quota %+v; want 1 RPM", got)
	}
	if err := rl.Close(); err != nil {
		t.Error(err)
	}
}

func TestSetQuotaAndAddProviderAdd(t *testing.T) {
	rl := memConfigured(t, Config{Quotas: map[string]ModelQuota{"own": {MaxRPM: 3}, "gpt-4o": {MaxRPM: 1}}})
	want := rl.Quotas()
	if err := rl.SetQuota("new", ModelQuota{MaxTPM: 9}); err != nil {
		t.Fatal(err)
	}
	want["new"] = ModelQuota{MaxTPM: 9}
	if got := rl.Quotas(); !maps.Equal(got, want) {
		t.Errorf("after SetQuota: %v; want %v", got, want)
	}
	if err := rl.AddProvider(ProviderOpenAI); err != nil {
		t.Fatal(err)
	}
	maps.Copy(want, DefaultProfiles()[ProviderOpenAI].Models)
	if got := rl.Quotas(); !maps.Equal(got, want) {
		t.Errorf("after AddProvider: %v; want %v", got, want)
	}
	if err := rl.AddProvider(ProviderLocal); err != nil {
		t.Fatal(err)
	}
	if got := rl.Quotas(); !maps.Equal(got, want) {
		t.Errorf("after AddProvider(local): %v; want %v", got, want)
	}
}

// TestSetQuotaForAnUnknownModel: usage from before the model had a quota counts.
func TestSetQuotaForAnUnknownModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxRPM: 1})
		start := time.Now().UTC()
		rl.RecordUsage("new", 30, 5)
		time.Sleep(time.Hour)
		rl.RecordUsage("new", 10, 5)
		if err := rl.SetQuota("new", ModelQuota{MaxRPM: 2, MaxTPM: 20, MaxRPD: 2}); err != nil {
			t.Fatal(err)
		}
		want := ModelStats{RPM: 1, MaxRPM: 2, TPM: 15, MaxTPM: 20, RPD: 2, MaxRPD: 2, DayStart: start}
		if got := rl.Stats("new"); got != want {
			t.Errorf("stats %+v; want %+v", got, want)
		}
		if d := rl.Decide("new", 1); d.Code != DecisionRPDLimit || d.RetryAfter != 23*time.Hour {
			t.Errorf("%+v; want the day's limit, for 23h", d)
		}
	})
}

func TestErrNeverIsWrapped(t *testing.T) {
	rl := memLimiter(t, ModelQuota{MaxTPM: 10})
	_, err := rl.Acquire(t.Context(), memModel, 11)
	if !errors.Is(err, ErrNever) || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), memModel) {
		t.Errorf("Acquire: %v; want ErrNever, with the model's name", err)
	}
}
