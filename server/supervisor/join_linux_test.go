package supervisor_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/supervise"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// startRealManager starts a manager with two namespaces, and returns its address.
func startRealManager(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.Start(manager.Config{Store: mem.New(), Listener: listener})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	client, err := admin.New(admin.Config{Managers: []string{listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // no call is in flight
	for _, name := range []string{"presence", "sessions"} {
		if _, err := client.CreateNamespace(t.Context(), admin.Namespace{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	return listener.Addr().String()
}

// join joins two namespaces with the owner library, prints the sessions, and ends.
func join(wait bool, end func(presence, sessions *owner.Owner) error) func() error {
	return func() error {
		var owners []*owner.Owner
		for _, ns := range []leasehold.Namespace{"presence", "sessions"} {
			o, err := owner.Join(context.Background(), owner.Config{
				Namespace: ns, Managers: []string{os.Getenv(managerVariable)}, Addr: "127.0.0.1:8080", Name: leasehold.OwnerID(fmt.Sprint("server-", os.Getpid())), WaitForPredecessor: wait,
			})
			if err != nil {
				return err
			}
			fmt.Println(ns, o.Session())
			owners = append(owners, o)
		}
		return end(owners[0], owners[1])
	}
}

func joinRoles() map[string]func() error {
	killed := func(_, _ *owner.Owner) error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	return map[string]func() error{
		"join":                           join(false, killed),
		"join over TLS":                  joinOverTLS,
		"join and wait for predecessors": join(true, killed),
		"join without a listener": func() error {
			_, err := owner.Join(context.Background(), owner.Config{
				Namespace: "presence", Managers: []string{os.Getenv(managerVariable)}, Addr: "127.0.0.1:8080", Mover: &owner.Mover{
					Listen: "192.0.2.1:1",
					Export: func(context.Context, *owner.Export) error { return nil },
					Import: func(context.Context, *owner.Import) (func(leasehold.Lease), error) { return nil, nil },
				},
			})
			fmt.Println(err)
			return killed(nil, nil)
		},
		"join and close one": join(false, func(presence, sessions *owner.Owner) error {
			if err := presence.Close(context.Background()); err != nil {
				return err
			}
			return killed(presence, sessions)
		}),
	}
}

// printReport replaces the protocol with managers.
func printReport(_ context.Context, d *supervise.Death) (recorded bool, err error) {
	fmt.Println("end of", d.Namespace, d.ID)
	return true, nil
}

// A Join that fails leaves no session.
func TestFailedJoin(t *testing.T) {
	r := command(t, "127.0.0.1:1", "join without a listener")
	r.cmd.Env = append(r.cmd.Env, printVariable+"=true")
	if lines, _ := r.start(t).wait(t); len(lines) != 1 || !strings.Contains(lines[0], "cannot listen") {
		t.Errorf("printed %q: %s", lines, r.log.String())
	}
}

// The owner library registers sessions by itself, and removes those that have left.
func TestOwnerLibrary(t *testing.T) {
	manager := startRealManager(t)
	for role, want := range map[string][]int{"join": {0, 1}, "join and wait for predecessors": nil, "join and close one": {1}} {
		r := command(t, manager, role)
		r.cmd.Env = append(r.cmd.Env, printVariable+"=true")
		lines, ended := r.start(t).wait(t)
		if ended != "signal: killed" || len(lines) != 2+len(want) {
			t.Fatalf("%s: %s: %q, %s", role, ended, lines, r.log.String())
		}
		for _, joined := range want {
			if line := "end of " + lines[joined]; !strings.Contains(strings.Join(lines[2:], "\n"), line) {
				t.Errorf("%s: reported %q, want %q", role, lines[2:], line)
			}
		}
	}
}
