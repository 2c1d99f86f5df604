package documents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

func TestNewer(t *testing.T) {
	inOrder := []string{"", "1.1", "1.2", "1.10", "2.1", "10.1", "10.18446744073709551615", "18446744073709551615.3"}
	for i, a := range inOrder {
		for j, b := range inOrder {
			if got := documents.Newer(a, b); got != (i > j) {
				t.Errorf("%q is newer than %q: %v", a, b, got)
			}
		}
	}
}

func TestNoVersion(t *testing.T) {
	for _, none := range []string{"latest", "1", "1.2.3", "-1.2", "1.x"} {
		if documents.Newer(none, "1.1") || documents.Newer(none, "") {
			t.Errorf("%q is accepted as a version", none)
		}
	}
}

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
		d, err := api.Change(t.Context(), "home", set("address", `"10.0.0.1"`))
		if err != nil || len(announced) != 1 || announced[0].Version != d.Sections["address"].Version || string(announced[0].Set["address"]) != `"10.0.0.1"` {
			t.Fatalf("%v, %v; announced %+v", d, err, announced)
		}
		if _, err := api.Change(t.Context(), "home", set("long", `"`+strings.Repeat("x", 40<<10)+`"`)); err != nil || !announced[1].Long || announced[1].Set != nil {
			t.Errorf("%v; announced %+v", err, announced[1])
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
			if last := announced[len(announced)-1]; !last.Deleted || !documents.Newer(last.Version, d.Sections["address"].Version) {
				t.Errorf("announced %+v", last)
			}
		}
	})
}

// TestNewsFit: news always fit into a message.
func TestNewsFit(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		longest := 0
		n := c.Node("a")
		s, err := documents.Join(t.Context(), n.MovingConfig(), func(_ context.Context, news documents.News) error {
			data, err := json.Marshal(news)
			longest = max(longest, len(data))
			return err
		})
		meshtest.Serve(t, n, s, err)
		c.Settle()
		api := client(t, c, c.Node("caller"))
		if _, err := api.Change(t.Context(), "home", set("s", `"`+strings.Repeat("<", 30<<10)+`"`)); err != nil {
			t.Error(err)
		}
		odd := make([]string, documents.MaxSections)
		for i := range odd {
			odd[i] = fmt.Sprint(strings.Repeat("\x01", jsonhttp.MaxName-2), i)
		}
		if _, err := api.Change(t.Context(), "home", documents.Change{Remove: odd}); err != nil {
			t.Error(err)
		}
		if longest == 0 || longest > queue.MaxMessage {
			t.Errorf("news of %d bytes", longest)
		}
	})
}
