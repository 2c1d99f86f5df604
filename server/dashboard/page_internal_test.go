package dashboard

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/leasehold-dev/leasehold/server/browsertest"
)

// A shown is the page of a fake manager in a browser.
type shown struct {
	*browsertest.Window
	*world
	t     *testing.T
	board *Dashboard
}

// show opens the page of a manager.
func show(t *testing.T, browser *browsertest.Browser, w *world, cfg Config, hash string) *shown {
	t.Helper()
	cfg.Admin, cfg.Logger = w, slog.New(slog.DiscardHandler)
	board, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(board)
	t.Cleanup(func() {
		board.Close()
		server.Close()
	})
	return &shown{browser.Open("page", server.URL+"/"+hash, 1280, 1000), w, t, board}
}

// is compares the value of an expression in the page with want.
func is[T comparable](s *shown, expression string, want T) {
	s.t.Helper()
	if got := browsertest.Evaluate[T](s.Window, expression); got != want {
		s.t.Errorf("%s is %v, want %v", expression, got, want)
	}
}

// does runs statements in the page.
func (s *shown) does(statements string) {
	s.t.Helper()
	browsertest.Evaluate[bool](s.Window, "(() => {"+statements+"; return true; })()")
}

// showsText waits until an element contains a text.
func (s *shown) showsText(selector, text string) {
	s.t.Helper()
	s.Await(selector+" shows "+text, fmt.Sprintf(`[...document.querySelectorAll(%q)].some(e => e.textContent.includes(%q))`, selector, text))
}

// cells is an expression for the text of a column of a table.
func cells(section string, column int) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#%s tbody tr")].map(r => r.cells[%d].textContent).join("|")`, section, column)
}

// in returns the page for a subtest.
func (s *shown) in(t *testing.T) *shown { return &shown{s.For(t), s.world, t, s.board} } //nolint:thelper // it is one of two
