package leaseholdtest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A recorder is a testing.TB that records its failures.
type recorder struct {
	testing.TB
	why string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure returns the failure message of a function; empty if it succeeds.
func failure(c *Cluster, do func()) string {
	usual, r := c.t, &recorder{TB: c.t}
	c.t = r
	defer func() { c.t = usual }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
	return r.why
}

// Cut accepts the names of existing hosts, and fails the test for other
// names.
func TestCutNames(t *testing.T) {
	Run(t, Config{Managers: 2}, func(t *testing.T, c *Cluster) {
		a := c.Node("a")
		c.In("other").Node("b")
		for _, name := range []string{"b", "m1", "m2", "operator"} {
			if why := failure(c, func() { a.Cut(name) }); why != "" {
				t.Errorf("%s: %s", name, why)
			}
		}
		a.Heal()
		for _, name := range []string{"typo", "m3", "b:8080", ""} {
			why := failure(c, func() { a.Cut("b", name) })
			if !strings.Contains(why, fmt.Sprintf("%q", name)) || !strings.Contains(why, "[a b m1 m2 operator]") {
				t.Errorf("%q: the test fails with %q", name, why)
			}
		}
	})
}

// The names of managers and of the operator are not valid node names.
func TestNodeNames(t *testing.T) {
	Run(t, Config{}, func(t *testing.T, c *Cluster) {
		for _, name := range []string{"m1", "operator", "", "a:80", "a b"} {
			if why := failure(c, func() { c.Node(name) }); !strings.Contains(why, fmt.Sprintf("%q", name)) {
				t.Errorf("%q: the test fails with %q", name, why)
			}
		}
	})
}
