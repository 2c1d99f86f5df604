package load_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/examples/livemesh/load"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

func serve(t *testing.T, n *leaseholdtest.Node) {
	t.Helper()
	s, err := im.Join(t.Context(), n.MovingConfig(), im.Config{})
	meshtest.Serve(t, n, s, err)
}

func frontends(t *testing.T, c *leaseholdtest.Cluster, many int) (all []load.Frontend) {
	t.Helper()
	for i := range many {
		n := c.Node(fmt.Sprint("frontend-", i))
		asks := &im.Client{HTTP: meshtest.Client(t, c, n), URL: "http://im"}
		all = append(all, load.Frontend{Client: asks, Lookup: meshtest.Lookup(t, c, n)})
	}
	return all
}

// TestLoad: operations come when they are due, those of a server that is killed wait for the
// next one, and at the end all users are there.
func TestLoad(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		for _, name := range []string{"a", "b", "c"} {
			serve(t, c.Node(name))
		}
		c.Settle()
		l, err := load.Start(t.Context(), load.Config{
			Frontends: frontends(t, c, 3), Users: 100, Rate: 60, Inserts: 1, Updates: 1, Reads: 18, Seed: 1,
		}) // so few are written that nobody else brings back who was lost
		if err != nil {
			t.Fatal(err)
		}
		c.Advance(10 * time.Second)
		has, _ := c.Owner(leasehold.KeyOf("load"))
		c.Node(has).Kill()
		c.Advance(50 * time.Second)
		ending, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := l.Finish(ending)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(r)
		ended := r.All.Operations + int64(r.Errors+r.Gaps)
		if r.Took.Round(time.Second) != time.Minute || ended < 3500 || ended > 3620 {
			t.Errorf("%d operations in %v, and 60 a second were due", ended, r.Took)
		}
		if r.Republished == 0 || r.Absent != 0 || r.Users != 300 {
			t.Errorf("of %d users %d were published again and %d are absent", r.Users, r.Republished, r.Absent)
		}
		if r.All.P50 > 10*time.Millisecond || r.All.Max < 5*time.Second {
			t.Errorf("half within %v and all within %v, though a lease of 10 s had to run out", r.All.P50, r.All.Max)
		}
		if sum := r.ByInsert.Operations + r.ByUpdate.Operations + r.ByRead.Operations; sum != r.All.Operations || r.ByInsert.Operations == 0 {
			t.Errorf("%+v", r)
		}
		object, err := json.Marshal(r)
		if err != nil || !strings.Contains(string(object), fmt.Sprintf(`"users_republished":%d`, r.Republished)) {
			t.Errorf("%s, %v", object, err)
		}
	})
}

// Without servers, users are not there, and it says so.
func TestAbsent(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		l, err := load.Start(t.Context(), load.Config{Frontends: frontends(t, c, 1), Users: 5, Callers: 2, Rate: 10})
		if err != nil {
			t.Fatal(err)
		}
		c.Node("a").Kill()
		c.Advance(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		r, err := l.Finish(ctx)
		if err != nil || r.Absent != 5 || r.Errors == 0 || r.LastError == nil {
			t.Errorf("%+v, %v", r, err)
		}
		if text := r.String(); !strings.Contains(text, "0 of 5 are there") {
			t.Error(text)
		}
	})
}

func TestBadConfig(t *testing.T) {
	for name, cfg := range map[string]load.Config{
		"no frontends":     {},
		"too few users":    {Frontends: make([]load.Frontend, 1), Users: 1, Callers: 2},
		"a negative rate":  {Frontends: make([]load.Frontend, 1), Rate: -1},
		"negative reads":   {Frontends: make([]load.Frontend, 1), Inserts: 1, Reads: -1},
		"an empty one":     {Frontends: make([]load.Frontend, 1)},
		"negative callers": {Frontends: make([]load.Frontend, 1), Callers: -1},
	} {
		if _, err := load.Start(t.Context(), cfg); !errors.Is(err, leasehold.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
