package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/browsertest"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// browserPatience is how long something may take that should take a moment. It is spent
// only when a test fails.
const browserPatience = browsertest.Patience

// A window is one of a browser, with a dashboard in it.
type window struct {
	*browsertest.Window
	t *testing.T
}

// open opens a window.
func open(browser *browsertest.Browser, t *testing.T, url string) *window { //nolint:thelper // the window is the test's
	return &window{browser.Open("dashboard", url, 1280, 900), t}
}

// says waits until an element has a text in it.
func (w *window) says(selector, text string) {
	w.t.Helper()
	w.Await(fmt.Sprintf("%s says %q", selector, text),
		fmt.Sprintf(`[...document.querySelectorAll(%q)].some(e => e.textContent.includes(%q))`, selector, text))
}

// press clicks a button by its text, in an element.
func (w *window) press(selector, text string) {
	w.t.Helper()
	button := fmt.Sprintf(`[...document.querySelectorAll(%q)].find(b => b.textContent === %q && !b.disabled)`, selector+" button", text)
	w.Await("there is a button "+text, "Boolean("+button+")")
	browsertest.Evaluate[bool](w.Window, "("+button+".click(), true)")
}

// A shownTable is a table as the page has it, or the API.
type shownTable struct {
	LSN  string
	Rows [][5]string // start, limit, owner, generation, lost
}

func (w *window) table() (shown shownTable) {
	w.t.Helper()
	text := browsertest.Evaluate[string](w.Window, `import("/model.js").then(({ model }) => JSON.stringify({
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
	w.Shoot("failed")
	w.t.Fatalf("the page does not show what the API says: %.2000s", diff)
}
