package dashboard_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/browsertest"
)

// short returns a namespace with short leases, so that failures are detected soon.
func short() *leaseholdv1.NamespaceConfig {
	return &leaseholdv1.NamespaceConfig{Timing: &leaseholdv1.Timing{Lease: int64(2 * time.Second), Renew: int64(500 * time.Millisecond), Drift: 1.2}}
}

// stateOf is an expression for the state of an owner on the page.
func stateOf(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#owners tbody tr")].find(r => r.cells[0].textContent === %q)?.cells[2].textContent`, name)
}

// TestBrowser clicks through the page while owners join, drain and fail and the leader changes,
// and compares the page with the API. Screenshots: -args -screenshots=DIR.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	browser := browsertest.Start(t)
	f := startFleet(t, 2, short())
	leader := f.leader()
	standby := f.managers[0]
	if standby == leader {
		standby = f.managers[1]
	}
	w := open(browser, t, standby.page) // it shows the same
	w.showsText("#owners", "No owner has joined")
	w.showsText("#figures .trouble", "100 %")

	first := f.join("alpha", 1)
	f.join("beta", 2)
	f.look(standby.Addr())
	w.Await("both take part", stateOf("alpha")+` === "member" && `+stateOf("beta")+` === "member"`)
	w.showsText("#figures", "none") // keys without an owner
	w.agrees(f)
	w.showsText("#lookups tbody tr", "none") // its lag
	w.showsText("#events", "an owner joined")
	w.showsText("#managers", standby.Addr()+", a standby")
	w.showsText("#managers .terms", leader.Addr())

	t.Run("a key is explained", func(t *testing.T) {
		w := &window{w.For(t), t}
		w.Do(chromedp.SendKeys("#key", "alice"), chromedp.Click("#search button"))
		answer, err := f.admin().LookupKey(t.Context(), &leaseholdv1.LookupKeyRequest{Version: wire.Version, Namespace: pool, Key: uint64(leasehold.KeyOf("alice"))})
		if err != nil {
			t.Fatal(err)
		}
		w.showsText("#explanation", leasehold.KeyOf("alice").String()+`, the hash of "alice"`)
		w.showsText("#why", answer.GetRange().GetOwner()+" has it")
		w.showsText("#explanation dd", fmt.Sprint(answer.GetRange().GetLease().GetGeneration()))
		w.showsText("#selected", answer.GetRange().GetOwner())
	})
	t.Run("the ring goes by keys", func(t *testing.T) {
		w := &window{w.For(t), t}
		at := func() int {
			return browsertest.Evaluate[int](w.Window, `Number(document.getElementById("ring").ariaValueNow)`)
		}
		browsertest.Evaluate[bool](w.Window, `(document.getElementById("ring").focus(), true)`)
		last := browsertest.Evaluate[int](w.Window, `Number(document.getElementById("ring").ariaValueMax)`)
		for _, step := range []struct {
			key  string
			want int
		}{{"Home", 1}, {"ArrowRight", 2}, {"ArrowLeft", 1}, {"ArrowLeft", 1}, {"End", last}, {"ArrowRight", last}} {
			browsertest.Evaluate[bool](w.Window, fmt.Sprintf(`document.getElementById("ring").dispatchEvent(new KeyboardEvent("keydown", {key: %q, cancelable: true})) || true`, step.key))
			if got := at(); got != step.want {
				t.Errorf("after %s it is at range %d, want %d", step.key, got, step.want)
			}
		}
		if text := browsertest.Evaluate[string](w.Window, `document.getElementById("ring").ariaValueText`); text == "" {
			t.Error("the range has no text for screen readers")
		}
	})
	t.Run("events are filtered", func(t *testing.T) {
		w := &window{w.For(t), t}
		count := func(kind string) int {
			return browsertest.Evaluate[int](w.Window, `document.querySelectorAll("#events .`+kind+`").length`)
		}
		if count("note") == 0 || count("granted") == 0 {
			t.Fatal("there are no events")
		}
		browsertest.Evaluate[bool](w.Window, `([...document.querySelectorAll("#filters label")].find(l => l.textContent === "notes").querySelector("input").click(), true)`)
		if count("note") != 0 || count("granted") == 0 {
			t.Error("the filter shows unselected events, or no events")
		}
		browsertest.Evaluate[bool](w.Window, `([...document.querySelectorAll("#filters label")].find(l => l.textContent === "notes").querySelector("input").click(), true)`)
	})

	t.Run("an administrator drains", func(t *testing.T) {
		w := &window{w.For(t), t}
		if n := browsertest.Evaluate[int](w.Window, `document.querySelectorAll("#owners tbody button").length`); n != 0 {
			t.Errorf("%d buttons without a login", n)
		}
		w.press("header", "Log in")
		w.Do(chromedp.SendKeys("#token", "wrong"))
		w.press("#dialog", "Log in")
		w.showsText("#dialog-trouble", "not the administrator's token")
		w.Do(chromedp.SetValue("#token", token))
		w.press("#dialog", "Log in")
		w.showsText("#login", "Log out")
		w.press("#owners", "Drain…")
		w.showsText("#dialog-title", "Drain alpha?")
		w.showsText("#plan", "with their state")
		w.press("#dialog", "Cancel")
		if text := browsertest.Evaluate[string](w.Window, stateOf("alpha")); text != "member" {
			t.Errorf("a drain without confirmation has begun: %s", text)
		}
		w.press("#owners", "Drain…")
		w.showsText("#dialog-title", "Drain alpha?")
		w.press("#dialog", "Drain")
		w.Await("alpha is drained", stateOf("alpha")+` === "draining"`)
		w.showsText("#events", "an operator wants the owner drained")
		w.Await("it has nothing", `[...document.querySelectorAll("#owners tbody tr")].find(r => r.cells[0].textContent === "alpha").cells[4].textContent === "0"`)
		w.agrees(f)
		w.showsText("#events .moved", "beta got")
		w.press("#owners", "Cancel drain")
		w.press("#dialog", "Cancel the drain")
		w.Await("alpha takes part again", stateOf("alpha")+` === "member"`)
	})
	t.Run("an administrator moves", func(t *testing.T) {
		w := &window{w.For(t), t}
		w.press("#ranges", "Move…")
		w.showsText("#dialog-title", "Move 0000000000000000-")
		browsertest.Evaluate[bool](w.Window, `(document.getElementById("target").value = "alpha", true)`)
		w.press("#dialog", "See what that does")
		w.showsText("#dialog-title", "to alpha?")
		w.press("#dialog", "Move")
		w.Await("the dialog is closed", `!document.getElementById("dialog").open`)
		f.await("range at alpha", func(ctx context.Context) bool {
			answer, err := f.admin().LookupKey(ctx, &leaseholdv1.LookupKeyRequest{Version: wire.Version, Namespace: pool})
			return err == nil && answer.GetRange().GetOwner() == "alpha"
		})
		w.agrees(f)
		w.press("header", "Log out")
		w.Await("there are no buttons", `document.querySelectorAll("#owners tbody button").length === 0`)
	})

	kill(first)
	w.Await("alpha is suspected, or gone", `!["member"].includes(`+stateOf("alpha")+`)`)
	w.showsText("#events .vacated", "alpha lost")
	w.showsText("#figures", "none")
	w.agrees(f)

	f.join("gamma", 1)
	w.Await("gamma takes part", stateOf("gamma")+` === "member"`)
	w.agrees(f)

	leader.stop() // the standby takes over
	w.showsText("#managers", standby.Addr()+", the leader")
	w.Await("it is in touch", `document.getElementById("connection").dataset.state === "live" && !document.body.hasAttribute("data-stale")`)
	f.join("delta", 1)
	w.Await("delta takes part", stateOf("delta")+` === "member"`)
	w.agrees(f)
	if n := browsertest.Evaluate[int](w.Window, `document.querySelectorAll("#managers .terms li").length`); n < 2 {
		t.Errorf("%d leaders are listed, want the previous one as well", n)
	}

	standby.board.Close() // the dashboard stops
	_ = standby.server.Close()
	w.Await("the page is marked as stale", `document.getElementById("connection").dataset.state === "lost" && document.body.hasAttribute("data-stale")`)
	w.showsText("#trouble-what", "does not answer.")
	w.showsText("#trouble-what", "What is shown is as of ")
	w.Await("the age of the data grows", `/ ([4-9]|[1-9][0-9]+) s ago/.test(document.getElementById("trouble-age").textContent)`)
}

// TestHostileNames: names of owners and search input are shown as text, and are not executed.
func TestHostileNames(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	browser := browsertest.Start(t)
	f := startFleet(t, 1, short())
	names := []string{
		`<script>window.hacked=1</script>`, `<img src=x onerror="window.hacked=2">`, `"><svg onload=window.hacked=3>`,
		`'; window.hacked=4; '`, "javascript:window.hacked=5", "${window.hacked=6}", `</script><b>`, `__proto__`, `constructor`, ` \u0022`, "Ω≈ç√∫ 日本語 👾",
	}
	for _, name := range names {
		if err := leasehold.OwnerID(name).Validate(); err != nil {
			t.Fatalf("%q is no valid name, so the test is void: %v", name, err)
		}
		f.join(name, 1)
	}
	w := open(browser, t, f.managers[0].page)
	for _, name := range names {
		w.Await(name+" is shown", fmt.Sprintf(`[...document.querySelectorAll("#owners tbody tr")].some(r => r.cells[0].textContent === %q)`, name))
	}
	w.Await("all keys have an owner", `document.querySelector("#figures").textContent.includes("without an ownernone")`)
	w.agrees(f)
	for _, key := range names {
		w.Do(chromedp.SetValue("#key", key))
		w.press("#search", "Explain")
		w.showsText("#explanation", leasehold.KeyOf(key).String())
	}
	browsertest.Evaluate[bool](w.Window, fmt.Sprintf(`(location.hash = "#/" + encodeURIComponent(%q), true)`, names[1]))
	w.Await("a namespace that is none is refused", `document.getElementById("connection").textContent !== "" && document.getElementById("owners") !== null`)
	if hacked := browsertest.Evaluate[bool](w.Window, `"hacked" in window || document.querySelectorAll("main script, main svg, main img").length > 0`); hacked {
		t.Error("a name has become markup or a script")
	}
}
