package dashboard_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/browsertest"
)

// work sends checks to owners, with some hot keys, until the test ends.
func work(t *testing.T, owners []*owner.Owner) {
	t.Helper()
	done := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() {
		random := rand.New(rand.NewPCG(1, 2))
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			for range 20 {
				key := leasehold.KeyOf(fmt.Sprintf("user-%d", int(math.Exp(random.Float64()*7))))
				for _, o := range owners {
					o.Check(key)
				}
			}
		}
	})
	t.Cleanup(func() { close(done); working.Wait() })
}

// dark selects the dark or the light theme.
func (w *window) dark(yes bool) {
	w.t.Helper()
	scheme := "light"
	if yes {
		scheme = "dark"
	}
	w.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// TestScreenshots makes the screenshots of the documentation: make screenshots. Without the flag
// it runs the same steps, so that the command stays usable.
func TestScreenshots(t *testing.T) {
	browser := browsertest.Start(t)
	f := startFleet(t, 3, &leaseholdv1.NamespaceConfig{})
	var owners []*owner.Owner
	for i := range 6 {
		owners = append(owners, f.join(fmt.Sprintf("server-%d", i+1), 1+float64(i%3)/2))
	}
	work(t, owners)
	for range 3 {
		f.look(f.leader().Addr())
	}
	w := open(browser, t, f.leader().page)
	w.Await("hot keys are known", `document.querySelectorAll("#hot tbody tr").length > 3`)
	w.Await("loads are known", `[...document.querySelectorAll("#owners .bar")].filter(b => !b.parentElement.textContent.startsWith("0/s")).length === 6`)
	w.Do(chromedp.SetValue("#key", "alice"))
	w.press("#search", "Explain")
	w.showsText("#why", "has it")
	w.Do(chromedp.EmulateViewport(1280, 1500))
	w.Shoot("overview")
	w.dark(true)
	w.press("header", "Log in")
	w.Do(chromedp.SetValue("#token", token))
	w.press("#dialog", "Log in")
	w.press("#owners", "Drain…")
	w.showsText("#plan", "with their state")
	w.Do(chromedp.EmulateViewport(1280, 1000))
	w.Shoot("drain-dark")
	w.press("#dialog", "Cancel")
}
