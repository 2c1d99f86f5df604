package cast

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMain lets the test's binary play the roles of processes, as a question's
// program does.
func TestMain(m *testing.M) {
	roles := LockServices()
	roles["porter"] = startPorter
	Play(roles)
	os.Exit(m.Run())
}

// A porter carries orders out that he is told the names of.
type porter []string

func startPorter(_ context.Context, args []string) (Member, string, error) {
	if len(args) == 0 {
		return nil, "", errors.New("nothing to carry")
	}
	return porter(args), "at your service", nil
}

func (p porter) Obey(_ context.Context, o Order) (Answer, error) {
	if o.Do != p[0] {
		return Answer{}, UnknownOrder(o)
	}
	return Answer{Leases: o.Batch}, nil
}

func (porter) Close() error { return nil }

// gone reports whether a process has ended and was waited for.
func gone(p *Process) bool { return p.cmd.Process.Signal(syscall.Signal(0)) != nil }

func beginPorters(ctx context.Context, t *testing.T) Group {
	t.Helper()
	g, err := BeginGroup(ctx, "porter", 2, func(int) []string { return []string{"carry"} })
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestOrders(t *testing.T) {
	g := beginPorters(t.Context(), t)
	if info := g[0].Info(); info != "at your service" {
		t.Errorf("it says %q", info)
	}
	if got, err := g.Ask(Order{Do: "carry", Batch: 7}); err != nil || len(got) != 2 || got[1].Leases != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := g[0].Ask(Order{Do: "dance"}); err == nil || !strings.HasPrefix(err.Error(), "porter ") || !strings.Contains(err.Error(), "dance") {
		t.Errorf("an order that it does not know: %v", err)
	}
	g.Close()
	for _, p := range g {
		if !gone(p) {
			t.Errorf("process %d still runs", p.cmd.Process.Pid)
		}
	}
}

func TestMembersSayWhatIsWrong(t *testing.T) {
	if _, err := BeginGroup(t.Context(), "porter", 1, func(int) []string { return nil }); err == nil || !strings.Contains(err.Error(), "nothing to carry") {
		t.Errorf("the error is %v", err)
	}
}

// TestRolesStartNobody: a program that forgets to play its role does not start
// itself again and again.
func TestRolesStartNobody(t *testing.T) {
	t.Setenv(roleVariable, "porter")
	if _, err := Begin(t.Context(), "porter", "carry"); err == nil || !strings.Contains(err.Error(), "cast.Play") {
		t.Errorf("the error is %v", err)
	}
}

// TestInterrupt: all processes end when the context does.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := beginPorters(ctx, t)
	cancel()
	for _, p := range g {
		_ = p.cmd.Wait() // nothing but the end of the context ends it
		if !gone(p) {
			t.Errorf("process %d still runs", p.cmd.Process.Pid)
		}
	}
	if _, err := g.Ask(Order{Do: "carry"}); err == nil {
		t.Error("processes that have ended take orders")
	}
}

// locks are what can be acquired, and given back.
type locks interface {
	Acquire(ctx context.Context, n int, name string) (Turn, error)
	Release(ctx context.Context) error
}

// TestEtcd: a key that is locked is not locked again, and can be after it was
// released.
func TestEtcd(t *testing.T) {
	c, err := BeginEtcd(t.Context(), t.TempDir(), false, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	perClient, err := NewEtcdPerClient(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]locks{"lock": &EtcdPerLock{Etcd: c}, "client": perClient} {
		for range 2 {
			got, err := e.Acquire(t.Context(), 20, name)
			if err != nil || got.Leases != 20 || got.CPU <= 0 {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			if _, err := e.Acquire(t.Context(), 1, name); err == nil || !strings.Contains(err.Error(), "locked already") {
				t.Errorf("%s: acquired twice: %v", name, err)
			}
			if err := e.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestEtcdMutex(t *testing.T) {
	c, err := BeginEtcdOf(t.Context(), 1, t.TempDir(), false, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e, err := NewEtcdMutex(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time they wait for nobody
		if got, err := e.Acquire(t.Context(), 20, "m"); err != nil || got.Leases != 20 {
			t.Errorf("%+v, %v", got, err)
		}
		if err := e.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestTogether(t *testing.T) {
	got := Together([]Answer{{Leases: 3, Begin: 1_000, End: 5_000, CPU: 7}, {Leases: 4, Begin: 900, End: 4_000, CPU: 1}})
	if diff := cmp.Diff(Turn{7, 4_100, 8}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Together(nil); got != (Turn{}) {
		t.Errorf("of nobody: %v", got)
	}
}

func TestTail(t *testing.T) {
	var end tail
	for range 3 {
		if n, err := end.Write([]byte(strings.Repeat("x", tailBytes) + "end\n")); err != nil || n != tailBytes+4 {
			t.Errorf("%d, %v", n, err)
		}
	}
	if got := end.String(); len(got) != tailBytes-1 || !strings.HasSuffix(got, "xend") {
		t.Errorf("%d bytes, the last are %q", len(got), got[len(got)-4:])
	}
}
