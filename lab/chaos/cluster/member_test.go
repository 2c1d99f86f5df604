package cluster

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClaims(t *testing.T) {
	m := &Member{}
	if !m.Claim() || m.Claim() {
		t.Error("it is nobody's, or everybody's")
	}
	m.Release()
	if !m.Claim() {
		t.Error("it is not free again")
	}
}

// TestPanicked: last words are told from what is merely logged, and what want of memory or room
// may lead to from what it may not.
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
			t.Errorf("%q: %t, in want", log, got)
		}
	}
}

// TestExcuse: a process that crashes just before it is no longer excused ends after that.
func TestExcuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Member{Role: Owner, life: life{wanted: true}}
		m.Excuse(false)
		if m.mayEnd() {
			t.Error("it may end, and was never excused")
		}
		m.Excuse(true)
		time.Sleep(time.Hour)
		m.Excuse(false)
		time.Sleep(crashTime - 1)
		if !m.mayEnd() {
			t.Error("it may not end, and was excused until a moment ago")
		}
		time.Sleep(time.Nanosecond)
		if m.mayEnd() {
			t.Error("it may end for ever")
		}
	})
}

// TestWhoMayEnd: owners and callers have no reason to end, unless they are told to die.
func TestWhoMayEnd(t *testing.T) {
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

// TestPrograms: who has another program takes turns, and who has none stays what it is.
func TestPrograms(t *testing.T) {
	m := &Member{programs: []string{"old", "new"}}
	for _, want := range []int{1, 0, 1} {
		if m.Become(); m.next.Program != want {
			t.Errorf("it is program %d, want %d", m.next.Program, want)
		}
	}
	m = &Member{programs: []string{"old"}}
	if m.Become(); m.next.Program != 0 {
		t.Errorf("it has become %d", m.next.Program)
	}
}
