package documents_test

import (
	"context"
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// TestAnnounces: a change is acknowledged when it was announced. If the announcement fails, the
// change is executed, but its outcome is indeterminate.
func TestAnnounces(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		var announced []documents.News
		var failure error
		n := c.Node("a")
		s, err := documents.Join(t.Context(), n.MovingConfig(), func(_ context.Context, news documents.News) error {
			announced = append(announced, news)
			return failure
		})
		meshtest.Serve(t, n, s, err)
		c.Settle()
		api := client(t, c, c.Node("caller"))
		if _, err := api.Change(t.Context(), "home", set("address", `"10.0.0.1"`)); err != nil || len(announced) != 1 || announced[0].Document != "home" {
			t.Fatalf("%v; announced %+v", err, announced)
		}
		failure = errors.New("no subscriber is reachable")
		if _, err := api.Change(t.Context(), "home", set("address", `"10.0.0.2"`)); !errors.Is(err, leasehold.ErrIndeterminate) {
			t.Errorf("a failed announcement: %v", err)
		}
		if d, err := api.Get(t.Context(), "home"); err != nil || string(d.Sections["address"].Data) != `"10.0.0.2"` {
			t.Errorf("%v, %v", d, err)
		}
		// A repeated deletion is announced again.
		for _, failure = range []error{failure, nil} {
			before := len(announced)
			if err := api.Delete(t.Context(), "home"); (err != nil) != (failure != nil) || len(announced) == before {
				t.Errorf("%v; announced %+v", err, announced[before:])
			}
		}
	})
}
