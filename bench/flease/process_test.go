package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test's binary play the roles of processes, as the program
// does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && roles()[os.Args[1]] != nil {
		os.Exit(playRole(os.Args[1], os.Args[2:]))
	}
	os.Exit(m.Run())
}

// gone reports whether a process has ended and was waited for.
func gone(p *process) bool { return p.cmd.Process.Signal(syscall.Signal(0)) != nil }

func TestFloor(t *testing.T) {
	f, err := beginFloor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := f.acquire(t.Context(), 1000, "b1")
		if err != nil || got.Leases != proposers*1024 || got.Took <= 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	f.close()
	for _, p := range f.members {
		if !gone(p) {
			t.Errorf("process %d still runs", p.cmd.Process.Pid)
		}
	}
}

func TestFlease(t *testing.T) {
	f, err := beginFlease(t.Context(), proposers, 2*time.Second, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for _, name := range []string{"b1", "b2"} {
		got, err := f.acquire(t.Context(), 50, name)
		if err != nil || got.Leases == 0 || got.Leases > proposers*50 || got.Took <= 0 || got.CPU < 0 {
			t.Errorf("%+v, %v", got, err)
		}
		if err := f.release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestEtcd: a key that is locked is not locked again, and can be after it was
// released.
func TestEtcd(t *testing.T) {
	c, err := beginEtcd(t.Context(), t.TempDir(), false, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	perClient, err := newEtcdPerClient(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]contestant{"lock": &etcdPerLock{etcdCluster: c}, "client": perClient} {
		for range 2 {
			got, err := e.acquire(t.Context(), 20, name)
			if err != nil || got.Leases != proposers*20 || got.CPU <= 0 {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			if _, err := e.acquire(t.Context(), 1, name); err == nil || !strings.Contains(err.Error(), "locked already") {
				t.Errorf("%s: acquired twice: %v", name, err)
			}
			if err := e.release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "written")
	w, err := begin(t.Context(), "disk-writer", "-file", file)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.await(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ask(order{Do: orderWrite}); err != nil {
		t.Error(err)
	}
	got, err := w.ask(order{Do: orderRest})
	if err != nil || got.Bytes%block != 0 || got.Bytes != block*got.Syncs || got.End <= got.Begin {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := w.ask(order{Do: orderWrite}); err != nil {
		t.Error(err)
	}
	w.close() // while it writes
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

// TestInterrupt: all processes end when the context does.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, err := beginFloor(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for _, p := range f.members {
		_ = p.cmd.Wait() // nothing but the end of the context ends it
		if !gone(p) {
			t.Errorf("process %d still runs", p.cmd.Process.Pid)
		}
	}
	if _, err := f.acquire(ctx, 10, "b1"); err == nil {
		t.Error("leases of processes that have ended, and no error")
	}
}

func TestMembersSayWhatIsWrong(t *testing.T) {
	for role, args := range map[string][]string{
		"floor-member":  {"-index", "7", "-members", "127.0.0.1:1"},
		"flease-member": {"-self", "9", "-members", "127.0.0.1:1"},
		"etcd-member":   {"-index", "2", "-peers", "127.0.0.1:1"},
		"disk-writer":   {"-file", filepath.Join(t.TempDir(), "no", "such", "directory")},
	} {
		p, err := begin(t.Context(), role, args...)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.await(); err == nil || !strings.HasPrefix(err.Error(), role+" ") {
			t.Errorf("%s: the error is %v", role, err)
		}
		if _, err := p.ask(order{Do: "dance"}); err == nil {
			t.Errorf("%s has failed, and takes orders", role)
		}
		p.close()
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
