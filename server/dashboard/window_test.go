package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/browsertest"
)

// browserPatience is the timeout of browser conditions. Only a failing test waits so long.
const browserPatience = browsertest.Patience

// A window is a browser window with a dashboard.
type window struct {
	*browsertest.Window
	t *testing.T
}

// open opens a window.
func open(browser *browsertest.Browser, t *testing.T, url string) *window { //nolint:thelper // the window is the test's
	return &window{browser.Open("dashboard", url, 1280, 900), t}
}

// showsText waits until an element contains a text.
func (w *window) showsText(selector, text string) {
	w.t.Helper()
	w.Await(fmt.Sprintf("%s shows %q", selector, text),
		fmt.Sprintf(`[...document.querySelectorAll(%q)].some(e => e.textContent.includes(%q))`, selector, text))
}

// press clicks a button by its text, in an element.
func (w *window) press(selector, text string) {
	w.t.Helper()
	button := fmt.Sprintf(`[...document.querySelectorAll(%q)].find(b => b.textContent === %q && !b.disabled)`, selector+" button", text)
	w.Await("there is a button "+text, "Boolean("+button+")")
	browsertest.Evaluate[bool](w.Window, "("+button+".click(), true)")
}

// A shownTable is a table of the page or of the API.
type shownTable struct {
	LSN  string
	Rows [][5]string // start, limit, owner, generation, lost
}

func (w *window) table() (shown shownTable) {
	w.t.Helper()
	text := browsertest.Evaluate[string](w.Window, `import("/model.js").then(({ model }) => JSON.stringify({
		lsn: String(model.lsn), rows: model.rows.map((r, i) => [r.start.toString(16).padStart(16, "0"), model.interval(i).limit, model.nameOf(r.owner), String(r.generation), String(r.lost)]) }))`)
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		w.t.Fatal(err)
	}
	return shown
}

// table returns the table of the API.
func (f *fleet) table() (listed shownTable) {
	f.t.Helper()
	all, err := admin.NewLocal(f.admin()).Ranges(context.Background(), pool, "")
	if err != nil {
		return shownTable{} // there is no leader now
	}
	listed.LSN = fmt.Sprint(uint64(all.LSN))
	for _, r := range all.Ranges {
		limit, err := r.Limit.MarshalText()
		if err != nil {
			f.t.Fatal(err)
		}
		listed.Rows = append(listed.Rows, [5]string{
			r.Start.String(), string(limit), r.Owner, fmt.Sprint(uint64(r.Generation)), fmt.Sprint(uint64(r.LostAt)),
		})
	}
	return listed
}

// agrees waits until the page shows exactly the API's table.
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
			break // a different table at the same LSN does not change
		}
		diff = fmt.Sprintf("the page is at LSN %s, and the API at %s", shown.LSN, listed.LSN)
		time.Sleep(50 * time.Millisecond) // the browser has no event for this
	}
	w.Shoot("failed")
	w.t.Fatalf("the page differs from the API: %.2000s", diff)
}
