// The command screenshots makes the pictures of the dashboard for the documentation: a gateway with made-up traffic, in a
// real browser. `make screenshots` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/server"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

func main() {
	length := flag.Duration("for", 2*time.Minute, "how long there is traffic before the pictures are made; 15 minutes fill the columns")
	folder := flag.String("to", "../docs/pictures", "the folder that the pictures are written to")
	flag.Parse()
	if err := run(*length, *folder); err != nil {
		log.Fatal(err)
	}
}

func run(length time.Duration, folder string) error {
	provider := httptest.NewServer(mockprovider.New(mockprovider.Config{Script: reply}))
	defer provider.Close()
	ctx, cancel := context.WithCancel(context.Background())
	running, ended := make(chan server.Running, 1), make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{
			Load:    func() (*config.Config, error) { return config.Parse("pictures.yaml", configuration(provider.URL)) },
			Version: "v1.0.0",
			Started: func(r server.Running) { running <- r },
		})
	}()
	var r server.Running
	select {
	case r = <-running:
	case err := <-ended:
		cancel()
		return err
	}
	calling, stop := context.WithCancel(ctx)
	done := traffic(calling, "http://"+r.Clients.String())
	log.Printf("http://%s has traffic for %v", r.Admin, length)
	time.Sleep(length)
	err := take("http://"+r.Admin.String(), folder)
	stop()
	done()
	cancel()
	<-ended
	return err
}

// picture is one picture: of a page, in a theme and a size, after a script.
type picture struct {
	name, theme, page, script string
	width, height             int64
}

var pictures = []picture{
	{"dashboard-light", "light", "/#/", "", 1440, 900},
	{"dashboard-dark", "dark", "/#/", "", 1440, 900},
	{"dashboard-model-dark", "dark", "/#/model/gpt-6-astra", "", 1440, 1000},
	{"dashboard-project-light", "light", "/#/project/acme", "", 1440, 1000},
	{"dashboard-explain-light", "light", "/#/explain", `document.querySelector('tbody a.code').click()`, 1440, 900},
	{"dashboard-limits-dark", "dark", "/#/project/acme/search", `(async () => {
		[...document.querySelectorAll('button')].find((each) => each.textContent === 'Set limits').click();
		await new Promise((resolve) => setTimeout(resolve, 500));
		for (const [name, value] of [['requests_per_minute', '900'], ['dollars_per_day', '']]) {
			const input = document.querySelector('dialog [name=' + name + ']');
			input.value = value;
			input.dispatchEvent(new Event('input'));
		}
	})()`, 1440, 940},
	{"dashboard-phone-dark", "dark", "/#/", "", 390, 844},
}

// take makes all pictures.
func take(base, folder string) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, end := chromedp.NewContext(allocator)
	defer end()
	ctx, late := context.WithTimeout(ctx, 3*time.Minute)
	defer late()
	for _, p := range pictures {
		if err := p.take(ctx, base, folder); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (p *picture) take(ctx context.Context, base, folder string) error {
	steps := []chromedp.Action[chromedp.Void]{
		chromedp.EmulateViewport(p.width, p.height), chromedp.Navigate("about:blank"),
		chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			theme := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: p.theme}}}
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, theme)
			return err
		}),
		chromedp.Navigate(base + p.page), chromedp.Sleep(3 * time.Second),
	}
	if err := chromedp.Do(ctx, steps...); err != nil {
		return err
	}
	if p.script != "" {
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[any](p.script, chromedp.EvalAwaitPromise)); err != nil {
			return err
		}
		if err := chromedp.Do(ctx, chromedp.Sleep(2*time.Second)); err != nil {
			return err
		}
	}
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, p.name+".png"), shot, 0o644)
}
