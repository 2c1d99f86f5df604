package load_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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

func publishers(t *testing.T, c *leaseholdtest.Cluster, many int) (all []im.PublisherConfig) {
	t.Helper()
	for i := range many {
		n := c.Node(fmt.Sprint("frontend-", i))
		api := &im.Client{Client: meshtest.Client(t, c, n)}
		all = append(all, im.PublisherConfig{Client: api, Lookup: meshtest.Lookup(t, c, n)})
	}
	return all
}

// TestLoad: operations start at the scheduled rate, those for a killed server wait for the next
// owner, and at the end all users are present.
func TestLoad(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		for _, name := range []string{"a", "b", "c"} {
			serve(t, c.Node(name))
		}
		c.Settle()
		l, err := load.Start(t.Context(), load.Config{
			Publishers: publishers(t, c, 3), Users: 100, Callers: 4, Rate: 60, Inserts: 1, Updates: 1, Reads: 18, Seed: 1,
		}) // few writes, so that lost users are only restored by the publisher
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
		if math.Round(r.Seconds) != 60 || ended < 3500 || ended > 3620 {
			t.Errorf("%d operations in %v s, want 60 a second", ended, r.Seconds)
		}
		if r.Republished == 0 || r.Absent != 0 || r.Users != 300 {
			t.Errorf("of %d users %d were published again and %d are absent", r.Users, r.Republished, r.Absent)
		}
		if r.All.P50 > 10 || r.All.Max < 5000 {
			t.Errorf("p50 %v ms, max %v ms, although a lease of 10 s had to expire", r.All.P50, r.All.Max)
		}
		if sum := r.Inserts.Operations + r.Updates.Operations + r.Reads.Operations; sum != r.All.Operations || r.Inserts.Operations == 0 {
			t.Errorf("%+v", r)
		}
		object, err := json.Marshal(r)
		if err != nil || !strings.Contains(string(object), fmt.Sprintf(`"users_republished":%d`, r.Republished)) {
			t.Errorf("%s, %v", object, err)
		}
	})
}

// TestAbsent: without servers, users are reported as absent.
func TestAbsent(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		l, err := load.Start(t.Context(), load.Config{Publishers: publishers(t, c, 1), Users: 5, Callers: 2, Reads: 1, Updates: 1, Rate: 10})
		if err != nil {
			t.Fatal(err)
		}
		c.Node("a").Kill()
		c.Advance(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		r, err := l.Finish(ctx)
		if err != nil || r.Absent != 5 || r.Errors == 0 || r.LastError == "" || r.Err() == nil {
			t.Errorf("%+v, %v", r, err)
		}
		if text := r.String(); !strings.Contains(text, "0 of 5 are there") {
			t.Error(text)
		}
	})
}

func TestBadConfig(t *testing.T) {
	for want, change := range map[string]func(*load.Config){
		"users is 3, want 4":  func(c *load.Config) { c.Users = 3 },
		"rate is NaN":         func(c *load.Config) { c.Rate = math.NaN() },
		"reads is -1, want 0": func(c *load.Config) { c.Reads = -1 },
		"callers is 0":        func(c *load.Config) { c.Callers = 0 },
		"are all 0":           func(c *load.Config) { c.Inserts, c.Updates, c.Reads = 0, 0, 0 },
		"Client and a Lookup": func(c *load.Config) { c.Publishers = make([]im.PublisherConfig, 1) },
	} {
		cfg := load.Default()
		change(&cfg)
		if _, err := load.Start(t.Context(), cfg); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
