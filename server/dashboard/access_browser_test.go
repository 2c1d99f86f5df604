package dashboard_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/server/browsertest"
)

// TestBrowserOverTLS logs in with a token, sends an order, and checks that the page shows no data
// after the role is removed.
func TestBrowserOverTLS(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	s := startSecured(t)
	own, err := pki.ReadCertificates(s.ca.Path("manager/m1/tls.crt"))
	if err != nil {
		t.Fatal(err)
	}
	browser := browsertest.StartTrusting(t, own[0])
	w := open(browser, t, s.url+"/#/pool")
	w.showsText("#connection", "not logged in")
	w.showsText("#dialog-title", "Log in")
	w.Do(chromedp.SendKeys("#token", "leasehold_wrong-0123456789"))
	w.press("#dialog", "Log in")
	w.showsText("#dialog-trouble", "the token is not known")
	w.Do(chromedp.SetValue("#token", bob))
	w.press("#dialog", "Log in")
	w.showsText("#who", "token:bob, who may look")
	w.showsText("#connection", "live, at ")
	w.showsText("#namespaces", pool)
	if text := browsertest.Evaluate[string](w.Window, `document.getElementById("namespaces").textContent`); text != pool {
		t.Errorf("bob sees the namespaces %q", text)
	}
	if n := browsertest.Evaluate[int](w.Window, `document.querySelectorAll("#ranges tbody button").length - document.querySelectorAll("#ranges tbody tr").length`); n > 0 {
		t.Errorf("bob has %d buttons more than there are ranges", n)
	}
	if protocol := browsertest.Evaluate[string](w.Window, `performance.getEntriesByType("navigation")[0].nextHopProtocol`); protocol != "h2" {
		t.Errorf("the protocol of the page is %q", protocol)
	}

	w.press("header", "Log out")
	w.showsText("#connection", "not logged in")
	w.Await("no data is shown", `document.getElementById("namespaces").textContent === "" && document.querySelectorAll("#ranges tbody tr").length === 0`)
	w.Do(chromedp.SetValue("#token", alice))
	w.press("#dialog", "Log in")
	w.showsText("#login", "Log out")
	w.Await("alice is shown as the user", `document.getElementById("who").textContent === "token:alice"`)
	w.showsText("#ranges tbody", "Move…")

	s.change(policyWithout(`"token:alice"`))
	w.Await("no data is shown after the role is removed", `document.querySelectorAll("#ranges tbody tr").length === 0`)
	w.showsText("#trouble-what", "token:alice has no role")
}
