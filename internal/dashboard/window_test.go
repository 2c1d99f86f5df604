package dashboard_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// screenshots is for those who want to look at the page, and for the documentation.
var screenshots = flag.String("screenshots", "", "the directory in which the tests of the page leave pictures")

// browserPatience is how long something may take that should take a moment. It is spent
// only when a test fails.
const browserPatience = time.Minute

// A window is one of a browser, with a dashboard in it.
type window struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // it is the window
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

// open opens a window, and fails the test if its page complains: a script that throws, or
// something that the policy of the page forbids. Connections that fail when a manager dies
// are no complaints of the page's.
func open(browser context.Context, t *testing.T, url string) *window { //nolint:thelper // the window is the test's
	t.Helper()
	ctx, end := chromedp.NewContext(browser)
	t.Cleanup(end)
	w := &window{t, ctx}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == chromedp.ConsoleError && m.Source != "network" {
				t.Errorf("the page complains: %s", m)
			}
		}
	}()
	w.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url))
	return w
}

func (w *window) do(steps ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, browserPatience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		w.shoot("failed")
		w.t.Fatal(err)
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
		trouble, _ := chromedp.Run(w.ctx, chromedp.Evaluate[string](`document.body.innerText.slice(0, 3000)`))
		w.t.Fatalf("waiting until %s: %v; the page says\n%s", what, err, trouble)
	}
}

// says waits until an element has a text in it.
func (w *window) says(selector, text string) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s says %q", selector, text),
		fmt.Sprintf(`[...document.querySelectorAll(%q)].some(e => e.textContent.includes(%q))`, selector, text))
}

// evaluate returns what an expression is in the page; a promise is waited for.
func evaluate[T any](w *window, expression string) T {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, browserPatience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		w.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// press clicks a button by its text, in an element.
func (w *window) press(selector, text string) {
	w.t.Helper()
	button := fmt.Sprintf(`[...document.querySelectorAll(%q)].find(b => b.textContent === %q && !b.disabled)`, selector+" button", text)
	w.await("there is a button "+text, "Boolean("+button+")")
	evaluate[bool](w, "("+button+".click(), true)")
}

// shoot takes a picture, for those who asked for some.
func (w *window) shoot(what string) {
	w.t.Helper()
	if *screenshots == "" {
		return
	}
	picture, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, what+".png"), picture, 0o600)
	}
	if err != nil {
		w.t.Errorf("a picture of %s: %v", what, err)
	}
}

// A shownTable is a table as the page has it, or the API.
type shownTable struct {
	LSN  string
	Rows [][5]string // start, limit, owner, generation, lost
}

func (w *window) table() (shown shownTable) {
	w.t.Helper()
	text := evaluate[string](w, `import("/model.js").then(({ model }) => JSON.stringify({
		lsn: String(model.lsn), rows: model.rows.map((r, i) => [r.start.toString(16).padStart(16, "0"), model.limitText(i), model.nameOf(r.owner), String(r.generation), String(r.lost)]) }))`)
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		w.t.Fatal(err)
	}
	return shown
}

// table is the table as the API has it.
func (f *fleet) table() (listed shownTable) {
	f.t.Helper()
	stream := &pieces{ctx: context.Background()}
	if err := f.admin().ListRanges(&leaseholdv1.ListRangesRequest{Version: wire.Version, Namespace: pool}, stream); err != nil {
		return shownTable{} // nobody leads now
	}
	for _, piece := range stream.all {
		listed.LSN = fmt.Sprint(piece.GetLsn())
		for _, r := range piece.GetRanges() {
			listed.Rows = append(listed.Rows, [5]string{
				leasehold.Key(r.GetLease().GetStart()).String(), leasehold.Key(r.GetLease().GetLimit()).String(),
				r.GetOwner(), fmt.Sprint(r.GetLease().GetGeneration()), fmt.Sprint(r.GetLost()),
			})
		}
	}
	return listed
}

// pieces collects what ListRanges sends.
type pieces struct {
	leaseholdv1.AdminService_ListRangesServer
	ctx context.Context //nolint:containedctx // it is the stream's
	all []*leaseholdv1.ListRangesResponse
}

func (p *pieces) Context() context.Context { return p.ctx }

func (p *pieces) Send(piece *leaseholdv1.ListRangesResponse) error {
	p.all = append(p.all, piece)
	return nil
}

// agrees waits until the page has the very table that the API has.
func (w *window) agrees(f *fleet) {
	w.t.Helper()
	diff := ""
	deadline := time.Now().Add(browserPatience)
	for time.Now().Before(deadline) {
		listed, shown := f.table(), w.table()
		if listed.LSN != "" && listed.LSN == shown.LSN {
			if diff = cmp.Diff(listed, shown); diff == "" {
				return
			}
			break // the same LSN and another table: that does not go away
		}
		diff = fmt.Sprintf("the page is at LSN %s, and the API at %s", shown.LSN, listed.LSN)
		time.Sleep(50 * time.Millisecond) // a browser cannot be waited for otherwise
	}
	w.shoot("failed")
	w.t.Fatalf("the page does not show what the API says: %.2000s", diff)
}
