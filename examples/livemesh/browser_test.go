package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/leasehold-dev/leasehold/examples/livemesh/fleet"
	"github.com/leasehold-dev/leasehold/server/browsertest"
)

// A window is a browser window that runs a device.
type window struct {
	*browsertest.Window
	t    *testing.T
	name string
}

func open(browser *browsertest.Browser, t *testing.T, name, url string) *window { //nolint:thelper // the window is the test's
	return &window{browser.Open(name, url, 720, 640), t, name}
}

func (w *window) sees(peer, address string) {
	w.t.Helper()
	w.Await(fmt.Sprintf("%s has address %s", peer, address),
		fmt.Sprintf(`document.querySelector('dd[data-peer=%q]')?.textContent === %q`, peer, address))
}

// moves enters another address of the device.
func (w *window) moves(address string) {
	w.t.Helper()
	browsertest.Evaluate[bool](w.Window, `(document.getElementById("address").select(), true)`)
	w.Do(chromedp.SendKeys("#address", address), chromedp.Click("#publish"))
}

// shoot takes a screenshot, if the flag is set.
func (w *window) shoot(what string) { w.ShootAll(strings.ReplaceAll(w.name+"-"+what, " ", "-")) }

// TestTwoWindows runs figure 11 of Centrifuge: the home PC changes its address, and the
// work PC receives it, also while servers are killed. Screenshots: -args -screenshots=DIR.
func TestTwoWindows(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	browser := browsertest.Start(t)
	f := testFleet(t)
	at := func(i int, query url.Values) string { return f.Frontends[i] + "/?" + query.Encode() }
	choice := open(browser, t, "choice", at(0, nil))
	choice.Await("two doors are shown", `document.querySelectorAll('.door').length === 2 && !document.getElementById('choose').hidden`)
	leaveNonsense(t, f.Frontends[0]+"/queues/work%20PC/messages")
	home := open(browser, t, "home PC", at(0, url.Values{"device": {"home PC"}, "watch": {"work PC"}, "address": {"10.0.0.1"}}))
	work := open(browser, t, "work PC", at(1, url.Values{"device": {"work PC"}, "watch": {"home PC"}, "address": {"10.9.9.9"}}))
	home.sees("work PC", "10.9.9.9")
	work.sees("home PC", "10.0.0.1")
	leaveNonsense(t, f.Frontends[0]+"/queues/work%20PC/messages")
	home.moves("10.0.0.2")
	work.sees("home PC", "10.0.0.2")
	home.shoot("has moved")
	for i, victims := range [][]*fleet.Process{f.Servers(documentsSpace), f.Servers(topicsSpace), f.Servers(queuesSpace)} {
		// All servers of a service, so that its state is lost.
		for _, victim := range victims {
			victim.Kill()
		}
		address := fmt.Sprintf("10.0.1.%d", i+1)
		home.moves(address)
		for _, victim := range victims {
			if err := f.Revive(t.Context(), victim); err != nil {
				t.Fatal(err)
			}
		}
		work.sees("home PC", address)
	}
	work.shoot("after all servers were killed")
	home.sees("work PC", "10.9.9.9")                                                           // the work PC has published its address again
	home.Do(chromedp.Navigate(at(0, url.Values{"device": {"home PC"}, "watch": {"work PC"}}))) // reload
	home.Await("the address is kept", `document.getElementById('address').value === '10.0.1.3'`)
	home.sees("work PC", "10.9.9.9")
}

// leaveNonsense enqueues malformed messages.
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
