package dashboard_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// tab is a tab of the browser that shows a dashboard.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	messages []string // errors and warnings of the console, among them violations of the Content-Security-Policy
	foreign  []string // requests to anywhere but the gateway
}

// open opens a page of a dashboard, with nothing kept from earlier ones. The end of the test checks that the page had no
// error, and asked nobody else for anything. excused are parts of messages that the test provokes.
func open(t *testing.T, r *rig, page string, excused ...string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	ctx, end := context.WithTimeout(ctx, 10*time.Minute) // a busy machine takes minutes for a test of many pages
	b := &tab{t: t, ctx: ctx, url: r.url}
	b.do(chromedp.Navigate("about:blank"))
	console, requests := chromedp.Console(ctx), chromedp.Events(ctx, network.RequestWillBeSent)
	var listening sync.WaitGroup
	listening.Go(func() {
		for m, err := range console {
			if err != nil {
				return
			}
			if kind := fmt.Sprint(m.Type); kind == "error" || kind == "warning" || m.IsException() {
				b.mu.Lock()
				b.messages = append(b.messages, m.String()+" "+m.URL)
				b.mu.Unlock()
			}
		}
	})
	listening.Go(func() {
		for e, err := range requests {
			if err != nil {
				return
			}
			if !strings.HasPrefix(e.Request.URL, r.url+"/") {
				b.mu.Lock()
				b.foreign = append(b.foreign, e.Request.URL)
				b.mu.Unlock()
			}
		}
	})
	b.call(network.Enable, network.EnableParams{})
	t.Cleanup(func() {
		end()
		cancel()
		listening.Wait()
		b.check(excused)
	})
	b.size(1400, 1800)
	b.visit(page)
	return b
}

func (b *tab) call(cmd cdp.Command[network.EnableParams, cdp.Empty], p network.EnableParams) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, cmd, p); err != nil {
		b.t.Fatal(err)
	}
}

// check fails the test if the page had errors or asked others for anything.
func (b *tab) check(excused []string) {
	for _, m := range b.messages {
		fine := false
		for _, part := range excused {
			fine = fine || strings.Contains(m, part)
		}
		if !fine {
			b.t.Errorf("the console has: %s", m)
		}
	}
	if len(b.foreign) > 0 {
		b.t.Errorf("the page asks others: %q", b.foreign)
	}
}

// visit shows a page of the dashboard, such as "/#/keys", from the beginning.
func (b *tab) visit(page string) {
	b.t.Helper()
	b.until(`document.readyState === 'complete'`) // a form may still lead to this page, which would break off the next visit
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(b.url+page))
	b.until(`document.querySelector('h1') !== null`)
}

// turn turns to another page of the dashboard, without loading anything anew.
func (b *tab) turn(page string) {
	b.t.Helper()
	hash := strings.TrimPrefix(page, "/")
	eval[any](b, fmt.Sprintf(`(location.hash = %q, null)`, hash))
	b.until(fmt.Sprintf(`document.querySelector('.page')?.dataset.route === %q`, hash))
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// until waits until an expression is true in the page, or in the one that a form or a link leads to meanwhile.
func (b *tab) until(expression string) {
	b.t.Helper()
	var err error
	for again := true; again; again = err != nil && left(err) && b.ctx.Err() == nil {
		_, err = chromedp.Run(b.ctx, chromedp.Poll[any](expression, chromedp.WithPollingInterval(50*time.Millisecond)))
	}
	if err != nil {
		text, _ := chromedp.Run(context.WithoutCancel(b.ctx), chromedp.Evaluate[string](`document.body.innerText.slice(0, 1500)`))
		b.t.Fatalf("%s: %v\nThe page says:\n%s", expression, err, text)
	}
}

// left reports whether an error of the browser says that the page was left for another.
func left(err error) bool {
	return strings.Contains(err.Error(), "navigated") || strings.Contains(err.Error(), "Cannot find context")
}

// eval returns the value of an expression in the page, which may be a promise.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// shows waits until the page, or the part of it that a selector finds, has a text.
func (b *tab) shows(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((each) => each.textContent.includes(%q))`, selector, text))
}

// press clicks a button by its text or its label, in what is open on top.
func (b *tab) press(text string) {
	b.t.Helper()
	find := fmt.Sprintf(`(() => {
		const top = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document;
		return [...top.querySelectorAll('button'), ...top.querySelectorAll('a')].find((each) => (each.getAttribute('aria-label') ?? each.textContent) === %q && !each.disabled && each.checkVisibility());
	})()`, text)
	b.until(find + ` !== undefined`)
	eval[any](b, find+`.click()`)
}

// fill writes into an input of the dialog, or of the page if there is none.
func (b *tab) fill(name, value string) {
	b.t.Helper()
	find := fmt.Sprintf(`([...document.querySelectorAll('dialog[open]')].at(-1) ?? document).querySelector('[name=%q]')`, name)
	b.until(find + ` !== null`)
	eval[any](b, fmt.Sprintf(`(() => { const input = %s; input.value = %q; input.dispatchEvent(new Event('input', {bubbles: true})); })()`, find, value))
}

// scheme makes the system's theme "light" or "dark", and size the window's size.
func (b *tab) scheme(theme string) {
	b.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}
