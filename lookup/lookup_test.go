package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lookup"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

func TestFollowsTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		l := g.open(g.config("m"))
		wantOwner(t, l, 7, "a:1")

		changed := l.Changed()
		m.push(t, 1, 2)
		wantOwner(t, l, 7, "")
		wantOwner(t, l, half, "a:1")
		select {
		case <-changed:
		default:
			t.Error("the channel of Changed is not closed")
		}
		m.push(t, 2, 5)
		wantOwner(t, l, 7, "b:1")
		wantOwner(t, l, ^leasehold.Key(0), "b:1")
		if diff := cmp.Diff([]leasehold.LSN{0}, m.requests()); diff != "" {
			t.Errorf("LSNs of the requests (-want +got):\n%s", diff)
		}
	})
}

func TestAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("m", 4)
		l := g.open(g.config("m"))
		for _, c := range []struct {
			key   leasehold.Key
			want  lookup.Placement
			owned bool
		}{
			{7, lookup.Placement{Range: lower, Generation: 2, Owner: "b", Session: holderB.Session, Addr: "b:1", LSN: 4}, true},
			{half, lookup.Placement{Range: upper, LSN: 4}, false},
		} {
			got, owned := l.At(c.key)
			if diff := cmp.Diff(c.want, got); diff != "" || owned != c.owned {
				t.Errorf("at %v, owned %v (-want +got):\n%s", c.key, owned, diff)
			}
		}
	})
}

func TestAddrs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 2)
		l := g.open(g.config("m"))
		if l.Namespace() != g.config("m").Namespace {
			t.Errorf("namespace %q", l.Namespace())
		}
		want := func(addrs ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(addrs, l.Addrs()); diff != "" {
				t.Errorf("at lsn %d (-want +got):\n%s", l.LSN(), diff)
			}
		}
		want("a:1")
		m.push(t, 2, 3)
		want("a:1", "b:1")
		m.push(t, 3, 4)
		want("b:1")
		m.push(t, 4, 5)
		want("b:1")
	})
}

func TestGapIsRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		l := g.open(g.config("m"))
		m.push(t, 3, 5) // 2 and 3 are missing
		wantOwner(t, l, 7, "b:1")
		if diff := cmp.Diff([]leasehold.LSN{0, 1}, m.requests()); diff != "" {
			t.Errorf("LSNs of the requests (-want +got):\n%s", diff)
		}
	})
}

// If a manager fails, Open sends the request to the next one without delay.
func TestOpenSkipsFailedManagers(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*group, *manager)
	}{
		{"down", func(g *group, m *manager) { g.stop(m) }},
		{"without a table", func(_ *group, m *manager) { m.standbyWithoutTable() }},
		{"too many lookups", func(_ *group, m *manager) { m.refuse(leasehold.ErrLimit) }},
		{"invalid message", func(_ *group, m *manager) {
			m.respond(func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse { return &leaseholdv1.FollowResponse{} })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				c.fault(g, g.start("m1", 0))
				c.fault(g, g.start("m2", 0))
				g.start("m3", 1)
				for range 8 { // the order is random; a third start with m3
					began := time.Now()
					l := g.open(g.config("m1", "m2", "m3"))
					if took := time.Since(began); took != 0 {
						t.Errorf("Open took %v", took)
					}
					wantOwner(t, l, 7, "a:1")
				}
			})
		})
	}
}

// A request to a manager that does not reply times out, and Open retries at the others.
func TestOpenTimesOutSilentManagers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("m1", 0).stopReplying()
		g.start("m2", 0).stopReplying()
		g.start("m3", 1)
		began := time.Now()
		g.open(g.config("m1", "m2", "m3"))
		if took := time.Since(began); took > 1500*time.Millisecond {
			t.Errorf("Open took %v", took)
		}
	})
}

func TestOpenRejectsInvalidConfig(t *testing.T) {
	g := newGroup(t)
	const open = `open lookup "n": `
	for _, c := range []struct {
		name  string
		fault func(*lookup.Config)
		want  string
	}{
		{"no namespace", func(c *lookup.Config) { c.Namespace = "" }, `namespace: want 1 to 64 characters, have 0 bytes`},
		{"no managers", func(c *lookup.Config) { c.Managers = nil }, open + `0 managers: want the addresses, host:port, of 1 to 64`},
		{"empty address", func(c *lookup.Config) { c.Managers = []string{"m:1", ""} }, open + `manager 2 of 2: an address is missing: want host:port, such as manager-1:7400`},
		{"no port", func(c *lookup.Config) { c.Managers = []string{"m"} }, open + `manager 1 of 1: want host:port, such as manager-1:7400: address m: missing port in address`},
		{"plain text to another computer", func(c *lookup.Config) { c.Credentials = nil }, open + `m:7400 is not a loopback address, and the connection would be plaintext: set Credentials, from package secure, or to insecure.NewCredentials() if the network can be trusted`},
		{"stale too short", func(c *lookup.Config) { c.Stale = 14 * time.Second }, open + `poll 5s and stale 14s: want at least three polls in stale`},
		{"poll too short", func(c *lookup.Config) { c.Poll = -1 }, open + `poll -1ns: want 10ms to 24h0m0s`},
		{"poll too long", func(c *lookup.Config) { c.Poll = 1 << 62 }, open + `poll 1281023h53m38.427387904s: want 10ms to 24h0m0s`},
		{"negative keep losses", func(c *lookup.Config) { c.KeepLosses = -1 }, open + `keep -1 losses: want at least one`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := g.config("m")
			c.fault(&cfg)
			_, err := lookup.Open(t.Context(), cfg)
			if diff := cmp.Diff(c.want, fmt.Sprint(err)); diff != "" || !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("kind %v (-want +got):\n%s", leasehold.KindOf(err), diff)
			}
		})
	}
}

func TestOpenOfMissingNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("m", 0).refuse(leasehold.Errorf("follow", leasehold.ErrNotFound, "n", "no such namespace"))
		_, err := lookup.Open(t.Context(), g.config("m"))
		if !errors.Is(err, leasehold.ErrNotFound) || !strings.Contains(err.Error(), "'leasehold namespace create n'") {
			t.Errorf("kind %v: %v", leasehold.KindOf(err), err)
		}
	})
}

func TestOpenErrorContainsErrorOfEachManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("m1", 0).stopReplying()
		g.start("m2", 0).standbyWithoutTable()
		g.start("m4", 0).refuse(leasehold.Errorf("follow", leasehold.ErrLimit, "n", "10000 lookups are connected"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := lookup.Open(ctx, g.config("m1", "m2", "m3", "m4"))
		if !errors.Is(err, leasehold.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("kind %v: %v", leasehold.KindOf(err), err)
		}
		for _, want := range []string{
			`open lookup "n": no manager sent the table: `,
			`m1:7400: no answer`,
			`m2:7400: follow "m2:7400": the manager is not the leader and has no table`,
			`m3:7400: `, errUnreachable.Error(),
			`m4:7400: follow "n": 10000 lookups are connected`,
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error does not contain %q: %v", want, err)
			}
		}
	})
}

// When the connection to its manager breaks, a lookup sends a request to another one at
// once, because it would miss broadcasts until then.
func TestSwitchesManagerAfterDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m1 := g.start("m1", 1)
		l := g.open(g.config("m1", "m2", "m3"))
		m3 := g.start("m3", 5) // m2 is down
		elapse(time.Second)
		m1.requests()

		began := time.Now()
		g.stop(m1)
		wantOwner(t, l, half, "b:1")
		if len(m3.requests()) == 0 || time.Since(began) != 0 {
			t.Errorf("the other manager has received no request at once")
		}
	})
}

// A loss of contact is a separate event. The losses during the outage are reported when a manager
// replies again, exactly, and before contact is restored. With conservative recovery the whole key space is reported
// as well.
func TestLossOfContact(t *testing.T) {
	everything := leasehold.Loss{Range: leasehold.All, Cause: leasehold.CauseContact, LSN: 1, Resume: 1}
	const lost, restored = "contact lost at lsn 1", "contact restored at lsn 3"
	for name, test := range map[string]struct {
		conservative  bool
		before, after []any
	}{
		"exact":        {false, []any{lost}, []any{lossOfLower, restored}},
		"conservative": {true, []any{everything, lost}, []any{lossOfLower, restored}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				m := g.start("m", 1)
				cfg := g.config("m")
				cfg.ConservativeRecovery = test.conservative
				var events []any
				cfg.OnLoss = func(losses []leasehold.Loss) {
					for _, loss := range losses {
						events = append(events, loss)
					}
				}
				cfg.OnContact = func(c lookup.Contact) {
					if c.Age < cfg.Stale {
						t.Errorf("%+v is too early", c)
					}
					text := "contact restored"
					if c.Lost {
						text = "contact lost"
					}
					events = append(events, fmt.Sprintf("%s at lsn %d", text, c.LSN))
				}
				l := g.open(cfg)
				elapse(time.Minute)
				if len(events) > 0 || l.Age() > cfg.Poll+5*time.Second {
					t.Fatalf("while the manager replies: age %v, events %v", l.Age(), events)
				}
				m.stopReplying()
				elapse(36 * time.Second)
				if diff := cmp.Diff(test.before, events); diff != "" {
					t.Fatalf("when contact is lost (-want +got):\n%s", diff)
				}
				if l.Age() < 30*time.Second {
					t.Errorf("age is %v", l.Age())
				}
				wantOwner(t, l, 7, "a:1") // from the last table

				m.lead(3)
				elapse(6 * time.Second)
				if diff := cmp.Diff(slices.Concat(test.before, test.after), events); diff != "" {
					t.Fatalf("when contact is restored (-want +got):\n%s", diff)
				}
				wantOwner(t, l, 7, "b:1")
				if l.Age() > 6*time.Second {
					t.Errorf("age is %v", l.Age())
				}
			})
		})
	}
}

// A long outage without a loss reports no loss, and one loss and restoration of contact.
func TestOutageWithoutLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		cfg := g.config("m")
		var contacts []lookup.Contact
		cfg.OnContact = func(c lookup.Contact) { contacts = append(contacts, c) }
		l := g.open(cfg)
		var early, late []lookup.Contact
		into := func(to *[]lookup.Contact) lookup.LossOption {
			return lookup.WithContact(func(c lookup.Contact) { *to = append(*to, c) })
		}
		r := read(l.LossesSince(t.Context(), l.LSN(), into(&early)))
		m.stopReplying()
		elapse(time.Hour)
		s := read(l.LossesSince(t.Context(), l.LSN(), into(&late))) // starts while contact is lost
		elapse(time.Second)
		if len(late) != 1 {
			t.Errorf("contacts of a late reader: %+v", late)
		}
		m.lead(1)
		elapse(6 * time.Second)
		r.want(t)
		s.want(t)
		if len(contacts) != 2 || !contacts[0].Lost || contacts[1].Lost || contacts[1].Age < time.Hour {
			t.Errorf("contacts: %+v", contacts)
		}
		if !slices.Equal(contacts, early) || !slices.Equal(contacts, late) {
			t.Errorf("contacts: %+v, of readers %+v and %+v", contacts, early, late)
		}
	})
}

// Concurrent readers find the manager's table of each LSN, and the LSN never decreases.
func TestReadsWhileFollowing(t *testing.T) {
	g := newGroup(t)
	m := g.start("m", 0)
	m.changes = longHistory(400)
	var truth []*table.Table
	for n := range len(m.changes) + 1 {
		truth = append(truth, after(m.changes, n))
	}
	l := g.open(g.config("m"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var reading sync.WaitGroup
	for i := range 3 {
		reading.Go(func() {
			last := leasehold.LSN(0)
			for key := leasehold.Key(i); int(last) < len(m.changes) && ctx.Err() == nil; key += 0x9e3779b97f4a7c15 {
				p, _ := l.At(key)
				r, e := truth[p.LSN].At(key)
				if p.LSN < last || p.Range != r || p.Generation != e.Generation {
					t.Errorf("%v after lsn %d: %+v, want %v %+v", key, last, p, r, e)
					return
				}
				last = p.LSN
			}
		})
	}
	for n := range m.changes {
		m.push(t, n, n+1)
	}
	reading.Wait()
	if ctx.Err() != nil {
		t.Errorf("after a minute the lookup is at lsn %d", l.LSN())
	}
}

// longHistory returns n changes of many small ranges: a range without a holder is granted, another is released.
func longHistory(n int) []table.Change {
	const parts = 64
	holders := []*table.Holder{holderA, holderB}
	now := table.New()
	var changes []table.Change
	for i := range n {
		start := leasehold.Key(i*i%parts) << 58
		c := table.Change{
			LSN: now.LSN() + 1, Kind: table.Granted, Range: leasehold.Range{Start: start, Limit: start + 1<<58},
			Generation: now.Newest() + 1, Holder: holders[i%2],
		}
		if _, e := now.At(start); !e.Vacant() {
			c.Kind, c.Generation, c.Holder, c.Cause = table.Vacated, e.Generation, e.Holder, leasehold.CauseReleased
		}
		if err := now.Apply(&c); err != nil {
			panic(err)
		}
		changes = append(changes, c)
	}
	return changes
}

// A laptop can be suspended.
type laptop struct{ slept atomic.Int64 }

func (l *laptop) Offset() time.Duration            { return time.Duration(l.slept.Load()) }
func (l *laptop) Suspended() (time.Duration, bool) { return time.Duration(l.slept.Load()), true }
func (l *laptop) Tolerance() time.Duration         { return time.Millisecond }

// After a suspension of the computer the age of the table is unknown: the lookup is not ready, loses contact, and
// sends a request at once. It reports no loss.
func TestSuspendedComputer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		computer := &laptop{}
		cfg := g.config("m")
		var contacts []bool
		cfg.OnContact = func(c lookup.Contact) { contacts = append(contacts, c.Lost) }
		l, err := lookup.OpenOn(t.Context(), cfg, computer)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(context.Background()) //nolint:errcheck // it never fails
		r := read(l.Losses(t.Context()))
		elapse(time.Second)
		if l.Age() > 2*time.Second || !l.Ready() {
			t.Fatalf("before: age %v, ready %t", l.Age(), l.Ready())
		}
		m.stopReplying()
		computer.slept.Store(int64(time.Hour))
		time.Sleep(20 * time.Microsecond) // before the detector's next check
		if l.Age() < 30*time.Second || l.Ready() {
			t.Errorf("at once: age %v, ready %t", l.Age(), l.Ready())
		}
		r.want(t) // no loss
		if !slices.Equal(contacts, []bool{true}) {
			t.Errorf("contacts: %v", contacts)
		}
		if l.Age() < 30*time.Second || l.Ready() {
			t.Errorf("after the Slept event: age %v, ready %t", l.Age(), l.Ready())
		}
		m.lead(1)
		elapse(time.Second)
		if l.Age() > time.Second || !l.Ready() {
			t.Errorf("after a reply: age %v, ready %t", l.Age(), l.Ready())
		}
		if !slices.Equal(contacts, []bool{true, false}) {
			t.Errorf("contacts: %v", contacts)
		}
	})
}

// Managers that refuse get no immediate retries.
func TestBacksOffWhenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m1, m2 := g.start("m1", 0), g.start("m2", 0)
		m1.refuse(leasehold.ErrLimit)
		m2.refuse(leasehold.ErrLimit)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if _, err := lookup.Open(ctx, g.config("m1", "m2")); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Error(err)
		}
		if one, two := len(m1.requests()), len(m2.requests()); one != 1 || two != 1 {
			t.Errorf("%d and %d requests, want one each", one, two)
		}
	})
}

// Hints of many callers cause one request per interval.
func TestRefreshIsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		l := g.open(g.config("m"))
		elapse(time.Second)
		m.requests()
		for range 1000 {
			l.Refresh()
		}
		synctest.Wait()
		if n := len(m.requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		elapse(100 * time.Millisecond)
		l.Refresh()
		synctest.Wait()
		if n := len(m.requests()); n != 1 {
			t.Errorf("later: %d requests, want 1", n)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	before := goleak.IgnoreCurrent()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("m", 1)
		cfg := g.config("m")
		cfg.OnLoss = func([]leasehold.Loss) {}
		l := g.open(cfg)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for _, err := range l.Losses(context.Background()) {
				if !errors.Is(err, leasehold.ErrClosed) {
					t.Errorf("losses end with %v", err)
				}
			}
		}()
		synctest.Wait()
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
		<-ended
		if err := l.Close(context.Background()); err != nil {
			t.Errorf("second Close: %v", err)
		}
		wantOwner(t, l, 7, "a:1") // the last table
		l.Refresh()
		err := l.Do(t.Context(), 7, func(context.Context, string) error { return nil })
		if !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("do: %v", err)
		}
	})
	goleak.VerifyNone(t, before)
}
