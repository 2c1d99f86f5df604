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
			t.Errorf("%q is taken for a version", none)
		}
	}
}

// A change is acknowledged when those who want to know of it do. If they cannot be told, it
// is not, though it happened.
func TestAnnounces(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		var told []documents.News
		var deaf error
		n := c.Node("a")
		s, err := documents.Join(t.Context(), n.MovingConfig(), func(_ context.Context, news documents.News) error {
			told = append(told, news)
			return deaf
		})
		meshtest.Serve(t, n, s, err)
		c.Settle()
		asks := client(t, c, c.Node("caller"))
		d, err := asks.Change(t.Context(), "home", set("address", `"10.0.0.1"`))
		if err != nil || len(told) != 1 || told[0].Version != d.Sections["address"].Version || string(told[0].Set["address"]) != `"10.0.0.1"` {
			t.Fatalf("%v, %v; told %+v", d, err, told)
		}
		if _, err := asks.Change(t.Context(), "home", set("long", `"`+strings.Repeat("x", 40<<10)+`"`)); err != nil || !told[1].Long || told[1].Set != nil {
			t.Errorf("%v; told %+v", err, told[1])
		}
		deaf = errors.New("nobody hears")
		if _, err := asks.Change(t.Context(), "home", set("address", `"10.0.0.2"`)); !errors.Is(err, leasehold.ErrIndeterminate) {
			t.Errorf("nobody was told: %v", err)
		}
		if d, err := asks.Get(t.Context(), "home"); err != nil || string(d.Sections["address"].Data) != `"10.0.0.2"` {
			t.Errorf("%v, %v", d, err)
		}
		// A deletion that is repeated, because not all were told, is told again.
		for _, deaf = range []error{deaf, nil} {
			before := len(told)
			if err := asks.Delete(t.Context(), "home"); (err != nil) != (deaf != nil) || len(told) == before {
				t.Errorf("%v; told %+v", err, told[before:])
			}
			if last := told[len(told)-1]; !last.Deleted || !documents.Newer(last.Version, d.Sections["address"].Version) {
				t.Errorf("told %+v", last)
			}
		}
	})
}

// News fit into a message, whatever they are made of.
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
		asks := client(t, c, c.Node("caller"))
		if _, err := asks.Change(t.Context(), "home", set("s", `"`+strings.Repeat("<", 30<<10)+`"`)); err != nil {
			t.Error(err)
		}
		odd := make([]string, documents.MaxSections)
		for i := range odd {
			odd[i] = fmt.Sprint(strings.Repeat("\x01", jsonhttp.MaxName-2), i)
		}
		if _, err := asks.Change(t.Context(), "home", documents.Change{Remove: odd}); err != nil {
			t.Error(err)
		}
		if longest == 0 || longest > queue.MaxMessage {
			t.Errorf("news of %d bytes", longest)
		}
	})
}
