package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cast"
)

// TestMain lets the test's binary play the roles of processes, as the program
// does.
func TestMain(m *testing.M) {
	cast.Play(roles())
	os.Exit(m.Run())
}

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
	if _, err := f.acquire(t.Context(), 1, "b2"); err == nil {
		t.Error("processes that have ended take orders")
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

func TestWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "written")
	w, err := cast.Begin(t.Context(), "disk-writer", "-file", file)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Await(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Ask(order{Do: orderWrite}); err != nil {
		t.Error(err)
	}
	got, err := w.Ask(order{Do: orderRest})
	if err != nil || got.Bytes%block != 0 || got.Bytes != block*got.Syncs || got.End <= got.Begin {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := w.Ask(order{Do: orderWrite}); err != nil {
		t.Error(err)
	}
	w.Close() // while it writes
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestMembersSayWhatIsWrong(t *testing.T) {
	for role, args := range map[string][]string{
		"floor-member":  {"-index", "7", "-members", "127.0.0.1:1"},
		"flease-member": {"-self", "9", "-members", "127.0.0.1:1"},
		"etcd-member":   {"-index", "2", "-peers", "127.0.0.1:1"},
		"disk-writer":   {"-file", filepath.Join(t.TempDir(), "no", "such", "directory")},
	} {
		p, err := cast.Begin(t.Context(), role, args...)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Await(); err == nil || !strings.HasPrefix(err.Error(), role+" ") {
			t.Errorf("%s: the error is %v", role, err)
		}
		if _, err := p.Ask(order{Do: "dance"}); err == nil {
			t.Errorf("%s has failed, and takes orders", role)
		}
		p.Close()
	}
}
