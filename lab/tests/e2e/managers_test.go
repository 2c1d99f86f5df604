//go:build unix

package e2e

import (
	"context"
	"testing"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// TestManagers: package proc starts a group, and finds the next leader when the first is killed.
func TestManagers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	g, err := proc.NewManagers(proc.ManagersConfig{Program: leaseholdProgram, Dir: t.TempDir(), Count: 3, Ended: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.Start(ctx); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		created, err := g.CreateNamespace(ctx, &leaseholdv1.NamespaceConfig{Name: "users"})
		if created != want || err != nil {
			t.Errorf("created %t, %v; want %t", created, err, want)
		}
	}
	first, _, err := g.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	first.Kill()
	second, err := g.WaitForLeader(ctx)
	if err != nil || second == first {
		t.Fatalf("got %v, %v", second, err)
	}
	if err := second.Terminate(ctx); err != nil {
		t.Error(err)
	}
	if second.Alive() || second.Incarnation() != 0 {
		t.Error("the terminated manager is still running")
	}
}
