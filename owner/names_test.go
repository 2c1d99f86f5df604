package owner_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// srv is a resolver with fixed records.
type srv []*net.SRV

func (s srv) LookupHost(context.Context, string) ([]string, error) { return nil, nil }

func (s srv) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", s, nil
}

// An owner finds the managers by a name, and the next leader after the first one has failed.
func TestManagersByName(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Managers: 3}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("a")
		cfg := n.OwnerConfig()
		cfg.Managers = []string{"srv:///_leasehold._tcp.test"}
		var dns srv
		for _, addr := range c.Managers() {
			host, _, _ := net.SplitHostPort(addr)
			dns = append(dns, &net.SRV{Target: host + ".", Port: 7400})
		}
		cfg.Resolver = dns
		began := time.Now()
		o, err := owner.Join(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		n.Cleanup(func(ctx context.Context) { _ = o.Close(ctx) })
		if took := time.Since(began); took > time.Second {
			t.Errorf("Join took %v", took)
		}
		c.Settle()
		c.KillLeader()
		c.Advance(time.Minute)
		if _, ok := o.Check(leasehold.KeyOf("alice")); !ok {
			t.Error("the owner has lost its lease after a failover")
		}
	})
}
