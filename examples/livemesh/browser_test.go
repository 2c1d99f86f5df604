package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/leasehold-dev/leasehold/examples/livemesh/fleet"
)

// screenshots is for those who want to look at the page.
var screenshots = flag.String("screenshots", "", "the directory in which the test of the page leaves pictures")

// browserPatience is how long something may take that should take a moment, or a few
// seconds if a server was killed. It is spent only when a test fails.
const browserPatience = time.Minute

// A window is one of a browser, in which a device is played.
type window struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // it is the window
	name string
}

// startBrowser starts a browser that ends with the test, and returns its context.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED, NOT TESTED: there is no Chromium here; run make services as root where there is apt-get, or install what Debian calls chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(browserPatience))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// open opens a window, and fails the test if its page complains. Connections that fail
// when a server dies are no complaints of the page's.
func open(browser context.Context, t *testing.T, name, url string) *window { //nolint:thelper // the window is the test's
	t.Helper()
	ctx, end := chromedp.NewContext(browser)
	t.Cleanup(end)
	w := &window{t, ctx, name}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == chromedp.ConsoleError && m.Source != "network" {
				t.Errorf("%s: %s", name, m)
			}
		}
	}()
	w.do(chromedp.EmulateViewport(720, 640), chromedp.Navigate(url))
	return w
}

func (w *window) do(steps ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, browserPatience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		w.shoot("failed")
		w.t.Fatalf("%s: %v", w.name, err)
	}
}

// await waits until an expression is true in the page.
func (w *window) await(what, expression string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, browserPatience)
	defer cancel()
	poll := chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(0))
	if _, err := chromedp.Run(ctx, poll); err != nil {
		w.shoot("failed")
		log, _ := chromedp.Run(w.ctx, chromedp.Text("#log"))
		w.t.Fatalf("%s: waiting until %s: %v; the page says\n%s", w.name, what, err, log)
	}
}

func (w *window) sees(peer, address string) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s is known to be at %s", peer, address),
		fmt.Sprintf(`document.querySelector('dd[data-peer=%q]')?.textContent === %q`, peer, address))
}

// moves gives the device another address, as a user would.
func (w *window) moves(address string) {
	w.t.Helper()
	if _, err := chromedp.Run(w.ctx, chromedp.Evaluate[bool](`(document.getElementById("address").select(), true)`)); err != nil {
		w.t.Fatalf("%s: %v", w.name, err)
	}
	w.do(chromedp.SendKeys("#address", address), chromedp.Click("#publish"))
}

// shoot takes a picture, for those who asked for some.
func (w *window) shoot(what string) {
	w.t.Helper()
	if *screenshots == "" {
		return
	}
	picture, err := chromedp.Run(w.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, strings.ReplaceAll(w.name+"-"+what, " ", "-")+".png"), picture, 0o644) //nolint:gosec // it is for a document
	}
	if err != nil {
		w.t.Errorf("a picture of %s: %v", w.name, err)
	}
}

// TestTwoWindows plays figure 11 of Centrifuge: the home PC changes its address, and the
// work PC learns it, also while servers are being killed. Pictures: -args -screenshots=DIR.
func TestTwoWindows(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	browser := startBrowser(t)
	f := startFleet(t)
	at := func(i int, query url.Values) string { return f.Frontends()[i] + "/?" + query.Encode() }
	choice := open(browser, t, "choice", at(0, nil))
	choice.await("two doors are shown", `document.querySelectorAll('.door').length === 2 && !document.getElementById('choose').hidden`)
	leaveNonsense(t, f.Frontends()[0]+"/queues/work%20PC/messages")
	home := open(browser, t, "home PC", at(0, url.Values{"device": {"home PC"}, "watch": {"work PC"}, "address": {"10.0.0.1"}}))
	work := open(browser, t, "work PC", at(1, url.Values{"device": {"work PC"}, "watch": {"home PC"}, "address": {"10.9.9.9"}}))
	home.sees("work PC", "10.9.9.9")
	work.sees("home PC", "10.0.0.1")
	leaveNonsense(t, f.Frontends()[0]+"/queues/work%20PC/messages")
	home.moves("10.0.0.2")
	work.sees("home PC", "10.0.0.2")
	home.shoot("has moved")
	for i, victims := range [][]*fleet.Process{f.Servers(documentsSpace), f.Servers(topicsSpace), f.Servers(queuesSpace)} {
		// All servers of a service: whoever had it, it is gone.
		for _, victim := range victims {
			victim.Kill()
		}
		address := fmt.Sprintf("10.0.1.%d", i+1)
		home.moves(address)
		for _, victim := range victims {
			if err := f.Revive(t.Context(), victim, 0); err != nil {
				t.Fatal(err)
			}
		}
		work.sees("home PC", address)
	}
	work.shoot("after all servers were killed")
	home.sees("work PC", "10.9.9.9")                                                           // what the work PC had said before is known again
	home.do(chromedp.Navigate(at(0, url.Values{"device": {"home PC"}, "watch": {"work PC"}}))) // the page is loaded again
	home.await("it is still where it was", `document.getElementById('address').value === '10.0.1.3'`)
	home.sees("work PC", "10.9.9.9")
}

// leaveNonsense leaves messages that no service would.
func leaveNonsense(t *testing.T, queue string) {
	t.Helper()
	for _, body := range []string{
		`{"document": "home PC", "version": "latest", "set": {"address": "10.6.6.6"}}`, `{"set": "address"}`, `{"removed": 1}`, `null`,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, queue, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", body, answer.Status)
		}
	}
}
