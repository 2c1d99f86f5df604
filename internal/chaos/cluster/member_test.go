package cluster

import "testing"

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

// TestPanicked: last words are told from what is merely logged.
func TestPanicked(t *testing.T) {
	for log, want := range map[string]bool{
		"":                                  false,
		"leasehold: etcd: no space left":    false,
		"msg=\"no panic: it is all right\"": false,
		"msg=joined\npanic: oh no\n":        true,
		"panic: oh no":                      true,
		"fatal error: out of memory\n":      true,
		"[signal SIGSEGV: segmentation]":    true,
		"x\nWARNING: DATA RACE\n":           true,
	} {
		if got := panicked(log); got != want {
			t.Errorf("%q: %t", log, got)
		}
	}
}

// TestForgot: two of three managers that were restarted do not know any more what was, unless
// they have a store. It is said once.
func TestForgot(t *testing.T) {
	for _, test := range []struct {
		shape Shape
		blank int
		want  bool
	}{{Flease, 0, false}, {Flease, 1, false}, {Flease, 2, true}, {Flease, 3, true}, {Etcd, 3, false}} {
		c := &Cluster{cfg: Config{Shape: test.shape}, Managers: []*Member{{}, {}, {}}}
		for _, m := range c.Managers[:test.blank] {
			m.starts++
		}
		if got, again := c.Forgot(), c.Forgot(); got != test.want || again {
			t.Errorf("%+v: %t, and again %t", test, got, again)
		}
	}
}

// TestPrograms: who has another program takes turns, and who has none stays what it is.
func TestPrograms(t *testing.T) {
	m := &Member{programs: []string{"old", "new"}}
	for _, want := range []int{1, 0, 1} {
		if !m.Become() || m.program != want {
			t.Errorf("it is program %d, want %d", m.program, want)
		}
	}
	if m := (&Member{programs: []string{"old"}}); m.Become() || m.program != 0 {
		t.Errorf("it has become %d", m.program)
	}
}
