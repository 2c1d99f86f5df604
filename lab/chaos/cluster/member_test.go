package cluster

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestClaims(t *testing.T) {
	m := &Member{}
	if !m.Claim() || m.Claim() {
		t.Error("a member is not claimed exactly once")
	}
	m.Release()
	if !m.Claim() {
		t.Error("a released member is not free")
	}
}

// TestPanicked: crashes are distinguished from log lines, and crashes that lack of memory or disk can cause
// from others.
func TestPanicked(t *testing.T) {
	const machine = "\n\ngoroutine 7 [running]:\ngithub.com/leasehold-dev/leasehold/internal/core/machine/manager.(*Machine).found(0x1)\n\ngoroutine 1 [select]:\n"
	for log, want := range map[string]struct{ panicked, inWant bool }{
		"":                                        {false, false},
		"leasehold: etcd: no space left":          {false, false},
		"msg=\"no panic: it is all right\"":       {false, false},
		"msg=joined\npanic: oh no\n":              {true, false},
		"panic: oh no":                            {true, false},
		"fatal error: out of memory\n":            {true, false},
		"[signal SIGSEGV: segmentation]":          {true, false},
		"x\nWARNING: DATA RACE\n":                 {true, true},
		"panic: runtime error: index out":         {true, true},
		"x\npanic: log ends at lsn 7" + machine:   {true, true},
		"x\nfatal error: out of memory" + machine: {true, false},
		"x\npanic: no space left on device\n\ngoroutine 7 [running]:\ngo.uber.org/zap\n\ngoroutine 1 [select]:\ng/internal/core/machine/x\n": {true, false},
	} {
		if got := panicked(log, false); got != want.panicked {
			t.Errorf("%q: %t", log, got)
		}
		if got := panicked(log, true); got != want.inWant {
			t.Errorf("%q: %t, if excused", log, got)
		}
	}
}

// TestExcuse: a crash shortly before the end of the excuse is still excused.
func TestExcuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Member{Role: Owner, life: life{wanted: true}}
		m.Excuse(false)
		if m.mayEnd() {
			t.Error("it may end without an excuse")
		}
		m.Excuse(true)
		time.Sleep(time.Hour)
		m.Excuse(false)
		time.Sleep(crashTime - 1)
		if !m.mayEnd() {
			t.Error("it may not end shortly after the excuse")
		}
		time.Sleep(time.Nanosecond)
		if m.mayEnd() {
			t.Error("the excuse does not end")
		}
	})
}

// TestRolesThatMayEnd: owners and callers may not end by themselves, unless a fault can end them.
func TestRolesThatMayEnd(t *testing.T) {
	for _, test := range []struct {
		name string
		m    *Member
		want bool
	}{
		{"a manager", &Member{Role: Manager, life: life{wanted: true}}, true},
		{"a store", &Member{Role: Store, life: life{wanted: true}}, true},
		{"an owner", &Member{Role: Owner, life: life{wanted: true}}, false},
		{"a caller", &Member{Role: Caller, life: life{wanted: true}}, false},
		{"one that is ended", &Member{Role: Owner}, true},
		{"one without memory", &Member{Role: Owner, excused: true, life: life{wanted: true}}, true},
		{"one with a failpoint", &Member{Role: Caller, life: life{wanted: true, dies: true}}, true},
	} {
		if got := test.m.mayEnd(); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

// TestBlank: managers that were restarted are counted once.
func TestBlank(t *testing.T) {
	c := &Cluster{Managers: []*Member{{}, {}, {}}}
	c.Managers[0].life.starts++
	c.Managers[2].life.starts += 2
	if got, again := c.Blank(), c.Blank(); got != 2 || again != 0 {
		t.Errorf("%d, and again %d", got, again)
	}
}

// TestPrograms: a member with another program alternates, and one without does not.
func TestPrograms(t *testing.T) {
	m := &Member{programs: []string{"old", "new"}}
	for _, want := range []int{1, 0, 1} {
		if m.Become(); m.next.Program != want {
			t.Errorf("program %d, want %d", m.next.Program, want)
		}
	}
	m = &Member{programs: []string{"old"}}
	if m.Become(); m.next.Program != 0 {
		t.Errorf("program %d, want 0", m.next.Program)
	}
}

// Restarts are counted by reasons, which do not contain what differs between processes.
func TestReason(t *testing.T) {
	ended := errors.New("signal: killed")
	for log, want := range map[string]string{
		"":               "signal: killed",
		"level=INFO x\n": "signal: killed",
		"level=INFO x\nfailpoint owner/before-send: kill\n":                                                  "failpoint owner/before-send",
		"failpoint link/received: pause\nlevel=INFO y\n":                                                     "signal: killed",
		"leasehold-lab: open etcd \"http://10.77.0.4:2379\": etcd: etcdserver: leader changed\n":             "open etcd : etcd: etcdserver: leader changed",
		"leasehold: listen tcp 10.77.0.1:7400: bind: address in use\nTo see more, run it with --log-level x": "listen tcp bind: address in use",
	} {
		if got := reason(ended, log); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}
