// Package dashboard_test tests the dashboard of the gateway in a real browser: Chromium without a window.
package dashboard_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// browser is the context of the one browser of all tests.
var browser context.Context

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "dashboard")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	os.Setenv("TMPDIR", folder) // Chromium leaves files there
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, _ := chromedp.NewContext(allocator)
	defer chromedp.Cancel(ctx) // waits until it has ended
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "no browser starts: `make deps` installs Chromium:", err)
		return 1
	}
	browser = ctx
	return m.Run()
}
