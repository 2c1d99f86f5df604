package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/fleasebench"
)

// TestMain lets the test binary run in roles, as the program does.
func TestMain(m *testing.M) {
	proc.Play(roles())
	os.Exit(m.Run())
}

func TestFloor(t *testing.T) {
	f, err := startFloor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := f.Acquire(t.Context(), proposers*1000, "b1")
		if err != nil || got.Leases != proposers*1024 || got.Took <= 0 {
			t.Errorf("%+v, %v", got, err)
		}
		if err := f.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	f.close()
	if _, err := f.Acquire(t.Context(), 3, "b2"); err == nil {
		t.Error("calls to ended processes succeed")
	}
}

func TestFlease(t *testing.T) {
	f, err := startFlease(t.Context(), proposers, 2*time.Second, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for _, name := range []string{"b1", "b2"} {
		got, err := f.Acquire(t.Context(), proposers*50, name)
		if err != nil || got.Leases == 0 || got.Leases > proposers*50 || got.Took <= 0 || got.CPU < 0 {
			t.Errorf("%+v, %v", got, err)
		}
		if err := f.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "written")
	w, err := proc.Start(t.Context(), roleWriter, file)
	if err != nil {
		t.Fatal(err)
	}
	var got Written
	for range 2 {
		if err := w.Call("Write", nil, nil); err != nil {
			t.Error(err)
		}
		err := w.Call("Rest", nil, &got)
		if err != nil || got.Bytes%block != 0 || got.Bytes != block*got.Syncs || got.Took <= 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if err := w.Call("Rest", nil, &got); err == nil {
		t.Error("it rests twice")
	}
	if err := w.Call("Write", nil, nil); err != nil {
		t.Error(err)
	}
	w.Close() // during a write
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file was not removed: %v", err)
	}
}

func TestMembersReportErrors(t *testing.T) {
	for role, config := range map[string]any{
		roleFloor:  FloorConfig{7, []string{"127.0.0.1:1"}},
		roleFlease: fleasebench.MemberConfig{Self: 9, Members: []string{"127.0.0.1:1"}},
		roleWriter: filepath.Join(t.TempDir(), "no", "such", "directory"),
	} {
		if _, err := proc.Start(t.Context(), role, config); err == nil || !strings.HasPrefix(err.Error(), role+" ") {
			t.Errorf("%s: the error is %v", role, err)
		}
	}
}
