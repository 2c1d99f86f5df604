package lookup_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// records is a resolver with the SRV records of managers.
type records struct {
	mu       sync.Mutex
	managers []string // none: an error
	delay    time.Duration
}

func (r *records) set(managers ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.managers = managers
}

func (*records) LookupHost(context.Context, string) ([]string, error) {
	return nil, errors.ErrUnsupported
}

func (r *records) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	time.Sleep(r.delay) // of a bubble
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.managers) == 0 {
		return "", nil, errors.New("no DNS server replies")
	}
	var out []*net.SRV
	for _, name := range r.managers {
		out = append(out, &net.SRV{Target: name + ".", Port: 7400})
	}
	return "", out, nil
}

// A lookup follows the managers of a name while all of them are replaced, one by one.
func TestManagersAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, dns := newGroup(t), &records{}
		m, n := g.start("m1", 1), g.start("m2", 1)
		dns.set("m1", "m2")
		cfg := g.config()
		cfg.Managers, cfg.Resolver = []string{"srv:///_leasehold._tcp.test"}, dns
		l := g.open(cfg)
		for _, step := range []struct {
			stop  *manager
			start string
			left  string
		}{{m, "m3", "m2"}, {n, "m4", "m3"}} {
			g.start(step.start, 1)
			dns.set(step.left, step.start)
			g.stop(step.stop)
			elapse(time.Minute)
			if age := l.Age(); age > 6*time.Second {
				t.Errorf("the table is %v old after a manager was replaced by %s", age, step.start)
			}
		}
	})
}

// The error of Open names the target that could not be resolved.
func TestUnresolvedManagers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := newGroup(t).config()
		cfg.Managers, cfg.Resolver = []string{"srv:///_leasehold._tcp.test"}, &records{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := lookup.Open(ctx, cfg)
		if leasehold.KindOf(err) != leasehold.ErrUnavailable || !strings.Contains(err.Error(), "srv:///_leasehold._tcp.test: no DNS server replies") {
			t.Errorf("got %v", err)
		}
	})
}

// Failures of DNS are not broken connections: they cause no requests.
func TestUnresolvedNameNextToAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		cfg := g.config("m")
		cfg.Managers, cfg.Resolver = append(cfg.Managers, "srv:///_leasehold._tcp.test"), &records{}
		g.open(cfg)
		elapse(time.Minute)
		if n := len(m.requests()); n > 16 {
			t.Errorf("%d requests in a minute, want one per poll", n)
		}
	})
}

// The error of Open contains no managers that DNS does not contain any more.
func TestErrorsOfRemovedManagers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, dns := newGroup(t).config(), &records{}
		cfg.Managers, cfg.Resolver = []string{"srv:///_leasehold._tcp.test"}, dns
		dns.set("m1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := lookup.Open(ctx, cfg)
			failed <- err
		}()
		elapse(10 * time.Second)
		dns.set("m2")
		if err := <-failed; !strings.Contains(err.Error(), "m2:7400: ") || strings.Contains(err.Error(), "m1") {
			t.Errorf("got %v", err)
		}
	})
}

// A denial by one manager is not final while others are being resolved; it is when the name cannot be resolved.
func TestDenialBeforeNamesAreResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("m1", 1).deny()
		m2 := g.start("m2", 1)
		dns := &records{delay: 2 * time.Second}
		dns.set("m2")
		cfg := g.config("m1")
		cfg.Managers, cfg.Resolver = append(cfg.Managers, "srv:///_leasehold._tcp.test"), dns
		g.open(cfg)
		if n := len(m2.requests()); n != 1 {
			t.Errorf("m2 has received %d requests", n)
		}
		dns.set()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := lookup.Open(ctx, cfg); leasehold.KindOf(err) != leasehold.ErrDenied || ctx.Err() != nil {
			t.Errorf("without m2: %v", err)
		}
	})
}

// Open sends one request, to one of the managers of a name.
func TestOpenByNameSendsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, dns := newGroup(t), &records{}
		managers := []*manager{g.start("m1", 1), g.start("m2", 1), g.start("m3", 1)}
		dns.set("m1", "m2", "m3")
		cfg := g.config()
		cfg.Managers, cfg.Resolver = []string{"srv:///_leasehold._tcp.test"}, dns
		g.open(cfg)
		synctest.Wait()
		requests := 0
		for _, m := range managers {
			requests += len(m.requests())
		}
		if requests != 1 {
			t.Errorf("%d requests", requests)
		}
	})
}
