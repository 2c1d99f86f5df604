package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/command/namespacecmd"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// startEmptyManager starts a manager without namespaces, and returns its address.
func startEmptyManager(t *testing.T) (addr string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.Start(manager.Config{Store: mem.New(), Listener: listener, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	stop = func() { _ = m.Close(context.Background()) }
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// command runs a command, checks its exit status, and returns its output.
func command(t *testing.T, want int, args ...string) (out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := run(t.Context(), args, &stdout, &stderr); got != want {
		t.Fatalf("%v: exit status %d, want %d: %s%s", args, got, want, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}

// granted joins a namespace, and returns the generation of the first granted lease.
func granted(t *testing.T, addr string, in leasehold.Namespace) leasehold.Generation {
	t.Helper()
	leases := make(chan leasehold.Lease, 1)
	o, err := owner.Join(t.Context(), owner.Config{
		Managers: []string{addr}, Namespace: in, Name: "a", Addr: "127.0.0.1:1",
		OnGrant: func(all []leasehold.Lease) {
			select {
			case leases <- all[0]:
			default:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = o.Close(ended) // its managers may be gone
	})
	select {
	case l := <-leases:
		return l.Generation
	case <-time.After(time.Minute):
		t.Fatal("no lease was granted within a minute")
		return 0
	}
}

// A restore creates the namespaces of lost managers again, and no generation is used twice.
func TestBackupAndRestore(t *testing.T) {
	old, stop := startEmptyManager(t)
	command(t, 0, "namespace", "create", "presence", "--lease", "4s", "--policy", "adaptive", "--churn", "0.5", "--timeout", "1m", "--managers", old)
	command(t, 0, "namespace", "create", "empty", "--lease", "2s", "--managers", old)
	before := granted(t, old, "presence")
	saved, _ := command(t, 0, "manager", "backup", "--timeout", "1m", "--managers", old)
	file := filepath.Join(t.TempDir(), "backup.json")
	if err := os.WriteFile(file, []byte(saved), 0o600); err != nil {
		t.Fatal(err)
	}
	shown, _ := command(t, 0, "namespace", "show", "presence", "--json", "--managers", old)
	stop()

	anew, _ := startEmptyManager(t)
	out, errs := command(t, 0, "manager", "restore", file, "--timeout", "1m", "--managers", anew)
	if !strings.Contains(out, "restored 2 namespaces") || !strings.Contains(errs, "waiting 4.8s until every lease of the lost managers has expired") {
		t.Errorf("manager restore: output %s%s", out, errs)
	}
	// lately is the newest generation of a group that continued with a restored store until an hour ago.
	lately := leasehold.Generation(time.Now().Add(-time.Hour).Unix()) << 20
	if after := granted(t, anew, "presence"); after <= max(lately, before+1<<40) {
		t.Errorf("generation %d was granted after the restore, and %d before it", after, before)
	}
	again, _ := command(t, 0, "namespace", "show", "presence", "--json", "--managers", anew)
	var was, is namespacecmd.NamespaceShown
	if json.Unmarshal([]byte(shown), &was) != nil || json.Unmarshal([]byte(again), &is) != nil {
		t.Fatalf("not JSON: %s%s", shown, again)
	}
	was.Status, is.Status = nil, nil
	was.AfterGeneration, is.AfterGeneration = 0, 0
	if console.JSON(was) != console.JSON(is) {
		t.Errorf("the namespace was %s before the restore, and is %s", console.JSON(was), console.JSON(is))
	}
	// A second restore changes nothing, and an existing namespace that differs is not overwritten.
	if out, errs := command(t, 0, "manager", "restore", file, "--managers", anew, "--json"); !strings.Contains(out, `"restored": []`) || errs != "" {
		t.Errorf("second restore: output %s%s", out, errs)
	}
	command(t, 0, "namespace", "update", "presence", "--lease", "5s", "--managers", anew)
	if _, errs := command(t, 2, "manager", "restore", file, "--managers", anew); !strings.Contains(errs, "the namespace exists and differs from the backup") {
		t.Errorf("restore over a different namespace: output %s", errs)
	}
}

// A backup waits while a manager loads a table, and never combines the responses of two managers.
func TestBackupWaitsForLoadingTables(t *testing.T) {
	withTwoNamespaces := func(unread int) *fakeManager {
		return startFake(t, &fakeManager{unread: unread, namespaces: []*leaseholdv1.NamespaceConfig{{Name: "presence"}, {Name: "sessions"}}})
	}
	f := withTwoNamespaces(2)
	out, _ := command(t, 0, "manager", "backup", "--timeout", "1m", "--managers", f.addr)
	if got, err := admin.ParseBackup([]byte(out)); err != nil || len(got.Namespaces) != 2 {
		t.Errorf("manager backup: output %s: %v", out, err)
	}
	if requests := len(f.called()); requests != 2*3 {
		t.Errorf("%d requests, want 6: namespaces and status three times", requests)
	}

	loading := withTwoNamespaces(-1)
	if _, errs := command(t, 2, "manager", "backup", "--timeout", "2s", "--managers", loading.addr); !strings.Contains(errs, `"sessions": its newest generation is not available: loading its table; try again`) {
		t.Errorf("manager backup: output %s", errs)
	}
	out, _ = command(t, 0, "manager", "backup", "--timeout", "4s", "--managers", loading.addr+","+withTwoNamespaces(0).addr)
	if got, err := admin.ParseBackup([]byte(out)); err != nil || len(got.Namespaces) != 2 {
		t.Errorf("manager backup: output %s: %v", out, err)
	}
}
