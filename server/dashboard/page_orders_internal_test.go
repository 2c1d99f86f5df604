package dashboard

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/browsertest"
)

// ownerStates: a late owner is shown with its remaining time; an owner that has left is not shown.
func (s *shown) ownerStates() {
	s.set(func() {
		late := proto.CloneOf(s.owners[1])
		late.Patience = 3e9
		s.owners = []*leaseholdv1.OwnerStatus{late}
	})
	s.Await("one owner is removed", cells("owners", 0)+` === "owner-2"`)
	is(s, cells("owners", 2), "late, 3 s left")
	s.set(func() { s.owners = invented().owners })
	s.Await("it is back", cells("owners", 0)+` === "owner-1|owner-2"`)
}

// orders: the page sends the confirmed order, and detects an expired session.
func (s *shown) orders() {
	press := func(selector, text string) {
		s.t.Helper()
		button := fmt.Sprintf(`[...document.querySelectorAll("%s button")].find(b => b.textContent === %q && !b.disabled)`, selector, text)
		s.Await("there is a button "+text, "Boolean("+button+")")
		s.does(button + ".click()")
	}
	press("header", "Log in")
	s.Do(chromedp.SetValue("#token", aToken))
	press("#dialog", "Log in")
	s.showsText("#login", "Log out")
	press("#ranges", "Move…")
	s.does(`document.getElementById("target").value = "owner-2"`)
	press("#dialog", "See what that does")
	s.showsText("#dialog-title", "to owner-2?")
	is(s, `document.getElementById("dialog").open`, true)
	press("#dialog", "Move")
	s.Await("it is done", `!document.getElementById("dialog").open`)
	s.set(func() {
		if n := len(s.moved); n != 2 || !s.moved[0].GetDryRun() || s.moved[1].GetDryRun() || s.moved[1].GetOwner() != "owner-2" || s.moved[1].GetStart() != 0 || s.moved[1].GetLoseState() {
			s.t.Errorf("%d move orders: %v", n, s.moved)
		}
		s.plan = &leaseholdv1.Plan{Total: 12, Share: .5, ShareLost: .25}
	})
	press("#owners", "Drain…")
	s.showsText("#dialog-body", "The state of 25 % of the keys would be LOST")
	s.does(`document.getElementById("dialog-ok").click()`) // a state loss needs the check box
	is(s, `document.getElementById("dialog").open`, true)
	s.does(`document.getElementById("lose").click()`)
	press("#dialog", "Drain")
	s.Await("it is done", `!document.getElementById("dialog").open`)
	s.set(func() {
		if n := len(s.drained); n != 2 || !s.drained[0].GetDryRun() || s.drained[1].GetDryRun() || !s.drained[1].GetLoseState() || s.drained[1].GetOwner() != "owner-1" {
			s.t.Errorf("%d drain orders: %v", n, s.drained)
		}
	})
	s.board.sessions.mu.Lock()
	clear(s.board.sessions.open)
	s.board.sessions.mu.Unlock()
	press("#owners", "Drain…")
	s.showsText("#dialog-body", "log in first")
	s.does(`document.getElementById("dialog").querySelector("form").requestSubmit()`) // there is nothing to confirm
	s.Await("it is closed", `!document.getElementById("dialog").open`)
	s.showsText("#login", "Log in")
	is(s, `document.querySelectorAll("#owners tbody button, #ranges tbody td:last-child button").length`, 0)
}

// reasons: the explanation of a key contains the reasons from its history.
func (s *shown) reasons() {
	w := &world{fakeAdmin: newFakeAdmin()}
	d := &Dashboard{client: admin.NewLocal(w)}
	const gone = "was lost. The plan that says so was made because owners have gone."
	alice := leasehold.KeyOf("alice")
	because := func(r leaseholdv1.Reason) { w.past[len(w.past)-1].Reason = r }
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, "no owner has joined"},
		{func() { w.step(alice, false, 1, false) }, "owner-1 has it because the policy balanced gave it"},
		{func() { w.step(alice, false, 2, true) }, "with its state, from owner-1: the policy balanced or an operator wanted it"},
		{func() { w.step(alice, false, 2, false) }, "the lease of owner-2 has ended (expired)"},
		{func() { w.step(alice, false, 3, false) }, "when the lease of owner-2 had ended (expired); the state held under that was lost."},
		{func() { because(leaseholdv1.Reason_REASON_GONE) }, gone},
		{func() { w.change(table.Moved, leasehold.All, 9, someone(3), someone(3)) }, "had ended (expired); the state held under that " + gone + " Leases that lay side by side were made one since."},
		{func() { w.change(table.Moved, leasehold.All, 10, someone(4), someone(3)) }, "owner-4 has it, with its state, from owner-3"},
		{func() { because(leaseholdv1.Reason_REASON_LOAD) }, "it was moved to divide the load, and the policy balanced chose owner-4."},
		{func() { because(leaseholdv1.Reason_REASON_ORDER) }, "from owner-3: it was moved because an operator asked for it."},
		{func() { because(77) }, "for a reason that this page does not know (77)"},
		{func() { w.past = w.past[:0] }, "owner-4 has it; how it came to that is no longer remembered."},
	} {
		step.do()
		e, err := d.explanation(s.t.Context(), "pool", alice)
		if err != nil {
			s.t.Fatal(err)
		}
		text, err := json.Marshal(e)
		if err != nil {
			s.t.Fatal(err)
		}
		why := browsertest.Evaluate[string](s.Window, `import("/explain.js").then(({ why }) => why(`+string(text)+`))`)
		if !strings.Contains(why, step.want) || len(e.History.Entries) != len(w.past) {
			s.t.Errorf("explanation %q with %d changes, want %q", why, len(e.History.Entries), step.want)
		}
	}
}

// explanations: only the response to the latest request is shown, and none after a change of the
// namespace.
func (s *shown) explanations() {
	s.does(`document.getElementById("key").value = "alice"; document.querySelector("#search button").click()`)
	s.showsText("#explanation", leasehold.KeyOf("alice").String()+`, the hash of "alice"`)
	s.showsText("#why", "has it")
	is(s, `import("/explain.js").then(async ({ explain }) => {
		const real = window.fetch, slow = [];
		window.fetch = (...a) => a[0].includes("slow") ? new Promise(resolve => slow.push(() => resolve(real(...a)))) : real(...a);
		const first = explain("slow");
		await explain("0x4000000000000000");
		slow[0]();
		await first;
		window.fetch = real;
		return document.querySelector("#explanation .key").textContent;
	})`, "4000000000000000")
	s.does(`document.getElementById("key").value = "0xzz"; document.querySelector("#search button").click()`)
	s.showsText("#why.bad", "No explanation: ")
	is(s, `document.getElementById("explanation").textContent`, "")
	s.does(`document.getElementById("key").value = "bob"; document.querySelector("#search button").click()`)
	s.showsText("#why", "has it")
	s.does(`location.hash = "#/none"`)
	s.showsText("#empty", "There is no namespace none.")
	is(s, `document.getElementById("why").textContent + document.getElementById("explanation").textContent`, "")
	is(s, `document.querySelectorAll("#ranges tbody tr").length`, 0)
	s.does(`location.hash = "#/pool"`)
	s.Await("it is back", `document.querySelectorAll("#ranges tbody tr").length > 0`)
}
