package dashboard_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/browsertest"
)

const (
	manyOwners = 1000
	manyRanges = 64_000
)

// crowd joins many owners at once, and waits until all keys have an owner.
func (f *fleet) crowd(n int) []*owner.Owner {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*browserPatience)
	defer cancel()
	all := make([]*owner.Owner, n)
	var joining sync.WaitGroup
	for i := range all {
		joining.Go(func() {
			var err error
			if all[i], err = owner.Join(ctx, owner.Config{
				Namespace: pool, Managers: f.addrs(), Addr: "127.0.0.1:8080", Name: leasehold.OwnerID(fmt.Sprintf("server-%04d", i)), Logger: quietLog(),
			}); err != nil {
				f.t.Error(err)
			}
		})
	}
	joining.Wait()
	f.t.Cleanup(func() {
		var leaving sync.WaitGroup
		for _, o := range all {
			if o != nil {
				leaving.Go(func() { kill(o) })
			}
		}
		leaving.Wait()
	})
	f.await("owner for every key", func(ctx context.Context) bool {
		s, err := f.admin().GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		return err == nil && len(s.GetNamespaces()) == 1 && s.GetNamespaces()[0].GetOwners() == uint32(n) && s.GetNamespaces()[0].GetVacant() == 0 &&
			s.GetNamespaces()[0].GetRanges() >= uint32(n)*60
	})
	return all
}

// large returns a namespace in which every owner has 64 ranges.
func large() *leaseholdv1.NamespaceConfig {
	return &leaseholdv1.NamespaceConfig{
		Policy: "consistent", VirtualNodes: 64,
		Timing: &leaseholdv1.Timing{Lease: int64(20 * time.Second), Renew: int64(5 * time.Second), Drift: 1.2},
	}
}

// TestMany: with 1,000 owners and 64,000 ranges the page loads within a second, and shows a change
// within another.
func TestMany(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	browser := browsertest.Start(t)
	f := startFleet(t, 1, large())
	owners := f.crowd(manyOwners)
	if n := len(f.table().Rows); n < manyRanges*9/10 {
		t.Fatalf("there are %d ranges, want about %d", n, manyRanges)
	}
	page := f.managers[0].page
	const ready = `document.querySelectorAll("#owners tbody tr").length >= 20 && document.querySelectorAll("#ranges tbody tr").length >= 15`
	for i, name := range []string{"first", "with the hub awake"} {
		w := open(browser, t, page+"#/"+pool)
		w.Await("owners and ranges are shown", ready)
		painted := browsertest.Evaluate[float64](w.Window, `performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? performance.now()`)
		filled := browsertest.Evaluate[float64](w.Window, `performance.getEntriesByName("leasehold-filled")[0].startTime`)
		t.Logf("%s: first paint after %.0f ms, everything shown after %.0f ms", name, painted, filled)
		if painted > 1000 || filled > 5000 {
			t.Errorf("%s: first paint after %.0f ms, everything after %.0f ms, want 1,000 and 5,000 at most", name, painted, filled)
		}
		if i == 0 {
			w.agrees(f)
			continue
		}
		w.showsText("#owners .count", "1 to 20 of 1,000 owners")
		if browsertest.Screenshots() {
			w.Do(chromedp.EmulateViewport(1280, 1000))
			w.Shoot("many")
		}
		// Page and test run on one computer and share the wall clock.
		browsertest.Evaluate[bool](w.Window, `(new MutationObserver((_, o) => {
			if (/server-0500 lost \S+ and its state is lost: (left|expired)/.test(document.querySelector("#events").textContent)) { window.shownAt = Date.now(); o.disconnect(); }
		}).observe(document.getElementById("events"), { childList: true }), true)`)
		kill(owners[500])
		f.await("loss", func(context.Context) bool { return f.lossOf("server-0500") != 0 })
		lost := f.lossOf("server-0500")
		w.Await("the loss is shown", `Boolean(window.shownAt)`)
		late := browsertest.Evaluate[float64](w.Window, `window.shownAt`) - lost
		t.Logf("a loss is shown %.0f ms after it was written", late)
		if late > 5000 { // a second on an idle computer
			t.Errorf("a loss is shown %.0f ms after it was written", late)
		}
		w.agrees(f)
	}
}

// lossOf returns the time of the first loss by an owner, in milliseconds since 1970, or 0.
func (f *fleet) lossOf(name string) float64 {
	answer, err := f.admin().ListChanges(context.Background(), &leaseholdv1.ListChangesRequest{Version: wire.Version, Namespace: pool, Most: 1000})
	if err != nil {
		return 0
	}
	at := 0.0
	for _, c := range answer.GetChanges() {
		if ended := c.GetCause() == leaseholdv1.Cause_CAUSE_LEFT || c.GetCause() == leaseholdv1.Cause_CAUSE_EXPIRED; ended && c.GetHolder().GetOwner() == name {
			at = float64(c.GetAt().AsTime().UnixMilli())
		}
	}
	return at
}
