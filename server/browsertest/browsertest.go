// Package browsertest has tests look at pages in a real browser, Debian's Chromium.
package browsertest

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// screenshots is for those who want to look at a page, and for the documentation.
var screenshots = flag.String("screenshots", "", "the directory in which tests of pages leave pictures")

// Screenshots reports whether screenshots are enabled.
func Screenshots() bool { return *screenshots != "" }

// Patience is how long something may take that should take a moment, or a few seconds if a
// server was killed. It is spent only when a test fails.
const Patience = time.Minute

// A Browser has windows.
type Browser struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // it is the browser
}

// Start starts a browser that ends with the test. Where there is none the test is skipped.
func Start(t *testing.T) *Browser {
	t.Helper()
	return StartTrusting(t)
}

// StartTrusting is Start with a browser that takes these certificates of servers for good,
// and no others that the computer does not know.
func StartTrusting(t *testing.T, certs ...*x509.Certificate) *Browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED, NOT TESTED: there is no Chromium here; run make services as root where there is apt-get, or install what Debian calls chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WSURLReadTimeout(Patience))
	if len(certs) > 0 {
		var keys []string
		for _, cert := range certs {
			sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
			keys = append(keys, base64.StdEncoding.EncodeToString(sum[:]))
		}
		options = append(options, chromedp.Flag("ignore-certificate-errors-spki-list", strings.Join(keys, ",")))
	}
	ctx, err := launch(t, options)
	for again := 1; err != nil && again < launches; again++ {
		t.Logf("Chromium ended before it was asked anything (%d of %d times): %v", again, launches, err)
		ctx, err = launch(t, options)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &Browser{t, ctx}
}

// launches is the number of attempts to start a browser that exits before it loads a page:
// Chromium sometimes crashes within a fifth of a second, before it loads the dashboard.
const launches = 3

// launch starts a browser with an empty profile.
func launch(t *testing.T, options []chromedp.ExecAllocatorOption) (context.Context, error) {
	t.Helper()
	options = append(options[:len(options):len(options)], chromedp.UserDataDir(t.TempDir()))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, end := chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx); err != nil {
		end()
		stop()
		return nil, err
	}
	t.Cleanup(stop)
	t.Cleanup(end)
	return ctx, nil
}

// A Window is one of a browser. It is for the goroutine of the test.
type Window struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // it is the window
	name string
}

// Open opens a window of a size, and fails the test if its page complains: a script that
// throws, or something that the policy of the page forbids. Connections that fail when a
// server dies are no complaints of the page's.
func (b *Browser) Open(name, url string, width, height int64) *Window {
	b.t.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	w := &Window{b.t, ctx, name}
	messages, heard := chromedp.Console(ctx), make(chan struct{})
	b.t.Cleanup(func() {
		end()
		<-heard
	})
	go func() {
		defer close(heard)
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == chromedp.ConsoleError && m.Source != "network" {
				b.t.Errorf("%s: the page complains: %s", name, m)
			}
		}
	}()
	w.Do(chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	return w
}

// For is the window in another test, of which this one is a part.
func (w *Window) For(t *testing.T) *Window { return &Window{t, w.ctx, w.name} } //nolint:thelper // it is not called by a test function alone

// Do takes steps in the window, one after the other.
func (w *Window) Do(steps ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, Patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		w.Shoot(w.name + "-failed")
		w.t.Fatalf("%s: %v", w.name, err)
	}
}

// Await waits until an expression is true in the page.
func (w *Window) Await(what, expression string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, Patience)
	defer cancel()
	poll := chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(0))
	if _, err := chromedp.Run(ctx, poll); err != nil {
		w.Shoot(w.name + "-failed")
		says, _ := chromedp.Run(w.ctx, chromedp.Evaluate[string](`document.body.innerText.slice(0, 3000)`))
		w.t.Fatalf("%s: waiting until %s: %v; the page says\n%s", w.name, what, err, says)
	}
}

// Evaluate returns what an expression is in the page; a promise is waited for.
func Evaluate[T any](w *Window, expression string) T {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, Patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		w.t.Fatalf("%s: %s: %v", w.name, expression, err)
	}
	return value
}

// Shoot takes a picture of what can be seen, for those who asked for some.
func (w *Window) Shoot(file string) { w.shoot(file, chromedp.CaptureScreenshot()) }

// ShootAll takes a picture of the whole page.
func (w *Window) ShootAll(file string) { w.shoot(file, chromedp.FullScreenshot(100)) }

func (w *Window) shoot(file string, take chromedp.Action[[]byte]) {
	w.t.Helper()
	if !Screenshots() {
		return
	}
	picture, err := chromedp.Run(w.ctx, take)
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, file+".png"), picture, 0o644) //nolint:gosec // it is for a document
	}
	if err != nil {
		w.t.Errorf("%s: a picture: %v", w.name, err)
	}
}
