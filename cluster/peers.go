package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerdns"
	"github.com/leasehold-dev/leasehold/manager"
)

// Peers are the names of all processes of a cluster: their Self addresses. See "Names" in the
// package's documentation.
type Peers struct {
	find    func(context.Context) ([]string, error)
	size    int   // of List
	valid   bool  // List, DNS, SRV or Func
	problem error // of the name of DNS or SRV
}

// List returns fixed names.
func List(addrs ...string) Peers {
	all := slices.Clone(addrs)
	return Peers{find: func(context.Context) ([]string, error) { return all, nil }, size: len(all), valid: true}
}

// DNS returns a name for each address of a host, given as host:port. The addresses must be fixed.
// It requires Config.Size.
func DNS(hostport string) Peers { return resolved("dns:///" + hostport) }

// SRV returns a name for each SRV record of a service, such as
// _presence._tcp.presence.default.svc.cluster.local, for the pods of a StatefulSet with a headless
// service. The service must publish pods that are not ready (publishNotReadyAddresses). It requires
// Config.Size.
func SRV(service string) Peers { return resolved("srv:///" + service) }

func resolved(target string) Peers {
	p := Func(func(ctx context.Context) ([]string, error) {
		return managerdns.Lookup(ctx, []string{target}, nil)
	})
	p.problem = managerdns.Check(target, "presence:7400")
	return p
}

// Func returns the names that a function finds. Join calls it every second until it returns Config.Size
// names.
func Func(find func(context.Context) ([]string, error)) Peers { return Peers{find: find, valid: true} }

// members returns the names in an order that all processes agree on: shorter ones first, so that
// presence-2 comes before presence-10. It returns an error unless the list is complete.
func (c *Config) members(ctx context.Context) ([]string, error) {
	found, err := c.Peers.find(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.SortedFunc(slices.Values(found), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	all = slices.Compact(all)
	switch {
	case len(all) != c.Size:
		return nil, fmt.Errorf("there are %d names, want %d: %v", len(all), c.Size, all)
	case !slices.Contains(all, c.Self):
		return nil, fmt.Errorf("%s is not among the names %v", c.Self, all)
	}
	return all, nil
}

// awaitMembers waits until the list of names is complete.
func (c *Config) awaitMembers(ctx context.Context) ([]string, error) {
	var all []string
	err := c.await(ctx, "the names of its members", dnsPoll, func() (string, error) {
		var incomplete error
		if all, incomplete = c.members(ctx); incomplete == nil {
			return "", nil
		}
		if c.Peers.size > 0 { // a List does not change
			return "", c.bad("Peers: %w", incomplete)
		}
		return incomplete.Error(), nil
	})
	return all, err
}

// voters returns the members that run managers.
func voters(members []string) []string { return members[:min(len(members), manager.MaxPeers)] }

const (
	statePoll  = 20 * time.Millisecond // of this process
	dnsPoll    = time.Second           // of names and of other processes
	waitLog    = 10 * time.Second      // between lines with the same reason
	waitChange = time.Second           // between lines
)

// await calls a function until it returns no reason to wait, and logs the reason.
func (c *Config) await(ctx context.Context, what string, poll time.Duration, reason func() (string, error)) error {
	var logged time.Time
	var last string
	for {
		why, err := reason()
		if err != nil || why == "" {
			return err
		}
		if kind, age := withoutNumbers(why), time.Since(logged); age >= waitLog || age >= waitChange && kind != last {
			c.Logger.Info("this server waits for "+what, "why", why)
			logged, last = time.Now(), kind
		}
		timer := time.NewTimer(poll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return leasehold.Errorf(opJoin, leasehold.ErrUnavailable, string(c.Namespace), "this server waited for %s (%s): %w", what, why, context.Cause(ctx))
		}
	}
}

// withoutNumbers removes the digits of a text, which has remaining times.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}
