package manager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// A manager is started with an empty data directory by mistake. Owners keep their leases; creating a namespace of the
// same name, which would end them, is rejected; with the right directory the leases resume.
func TestWrongDataDirectory(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		s := c.serve(group(1))
		right := c.disk
		c.crash("m1")
		c.disk = mem.NewDisk()
		c.start("m1")
		eventually(t, time.Minute, "leases are suspended", s.suspended)
		_, err := c.admin("m1").CreateNamespace(t.Context(), &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: pool()})
		if err = wire.ToError(err); leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), "another data directory") {
			t.Errorf("the namespace is created while servers hold leases in it: %v", err)
		}
		c.crash("m1")
		c.disk = right
		c.start("m1")
		s.resumes(time.Minute)
	})
}

// After a long outage suspended leases resume one lease later. Meanwhile the status has the reason, and shows owners
// as suspended.
func TestStatusShowsRestoreWait(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		s := c.serve(group(1))
		c.crash("m1")
		time.Sleep(2 * time.Minute)
		c.start("m1")
		c.leads(time.Minute)
		time.Sleep(6 * time.Second)
		if problem := c.status("m1").GetNamespaces()[0].GetProblem(); !strings.Contains(problem, "suspended leases resume and ranges are granted in ") {
			t.Errorf("problem during the wait: %q", problem)
		}
		for _, o := range s.owners {
			if !c.listed("m1", string(o.Name())).GetSuspended() {
				t.Errorf("%s is not shown as suspended", o.Name())
			}
		}
		s.resumes(time.Minute)
		if problem := c.status("m1").GetNamespaces()[0].GetProblem(); problem != "" {
			t.Errorf("problem after the wait: %q", problem)
		}
	})
}
