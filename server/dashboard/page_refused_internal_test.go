package dashboard

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/browsertest"
)

// TestRefusedPage: a rejected visitor sees the reason, with any address.
func TestRefusedPage(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	browser := browsertest.Start(t)
	show := func(t *testing.T, browser *browsertest.Browser, w *world, cfg Config, hash string) *shown {
		t.Helper()
		return show(t, browser, w, cfg, hash).in(t)
	}
	t.Run("too many viewers", func(t *testing.T) {
		s := show(t, browser, invented(), Config{MaxViewers: 1}, "#/pool")
		s.Await("it is shown", `document.querySelectorAll("#ranges tbody tr").length > 0`)
		second := &shown{browser.Open("second", browsertest.Evaluate[string](s.Window, `location.href`), 800, 600).For(t), s.world, t, s.board}
		second.showsText("#trouble-what", "1 look at this manager already, and that is the limit")
		is(second, `document.getElementById("connection").dataset.state`, "lost")
		second.showsText("#owners", "No data from the manager.")
		second.showsText("#ranges", "No data from the manager.")
		s.Do(chromedp.Navigate("about:blank")) // that makes room
		second.Await("it is let in", `document.querySelectorAll("#ranges tbody tr").length > 0 && document.getElementById("trouble").hidden`)
	})
	t.Run("an address that is none", func(t *testing.T) {
		s := show(t, browser, invented(), Config{}, "#/%")
		s.showsText("#trouble-what", "shows nothing: ")
		s.does(`location.hash = "#/pool"`)
		s.Await("it is shown", `document.querySelectorAll("#ranges tbody tr").length > 0`)
		is(s, `document.getElementById("trouble").hidden`, true)
	})
	t.Run("sections without data", func(t *testing.T) {
		w := invented()
		w.hot, w.lookups = nil, nil // a manager of an earlier version
		s := show(t, browser, w, Config{}, "#/pool")
		s.showsText("#hot", "No data from the manager.")
		s.showsText("#lookups", "No data from the manager.")
	})
	t.Run("lost and restored contact", func(t *testing.T) {
		s := show(t, browser, invented(), Config{}, "#/pool")
		s.Await("it is shown", `document.querySelectorAll("#ranges tbody tr").length > 0`)
		s.fail(leasehold.Errorf("ask", leasehold.ErrUnavailable, "m2", "the leader does not answer"))
		s.showsText("#trouble-what", "This manager is out of touch: ")
		s.showsText("#connection", "out of touch")
		is(s, `document.body.hasAttribute("data-stale")`, true)
		s.fail(nil)
		s.showsText("#connection", "live, at m1:7400")
		is(s, `document.getElementById("trouble").hidden && !document.body.hasAttribute("data-stale")`, true)
	})
	t.Run("a closed dashboard", func(t *testing.T) {
		s := show(t, browser, invented(), Config{}, "#/pool")
		s.Await("it is shown", `document.querySelectorAll("#managers a").length > 0`)
		s.board.Close()
		s.showsText("#trouble-what", "shows nothing: look: this manager is shutting down; look at another")
		s.showsText("#trouble-age", " ago.")
		s.showsText("#trouble-others a", "m2:7400")
		is(s, `document.body.hasAttribute("data-stale")`, true)
		what := browsertest.Evaluate[string](s.Window, `document.getElementById("trouble-what").textContent`)
		age := browsertest.Evaluate[string](s.Window, `document.getElementById("trouble-age").textContent`)
		s.Await("time passes", fmt.Sprintf(`document.getElementById("trouble-age").textContent !== %q`, age))
		is(s, `document.getElementById("trouble-what").textContent`, what) // it is read out once
	})
}
