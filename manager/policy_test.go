package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// A moody policy is a policy of an application that fails with a function's errors.
type moody struct {
	partition.Even
	mood atomic.Pointer[func() error]
}

func (p *moody) Name() string { return "moody" }

func (p *moody) Assign(in partition.Input) (partition.Assignment, error) {
	if mood := p.mood.Load(); mood != nil {
		if err := (*mood)(); err != nil {
			return nil, err
		}
	}
	return p.Even.Assign(in)
}

func (p *moody) fails(how func() error) { p.mood.Store(&how) }

// A diary is a log in memory, of warnings and errors.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (d *diary) WithAttrs([]slog.Attr) slog.Handler               { return d }
func (d *diary) WithGroup(string) slog.Handler                    { return d }

func (d *diary) Handle(_ context.Context, r slog.Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, r.Message)
	return nil
}

// count returns the number of lines that contain the words.
func (d *diary) count(words string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, line := range d.lines {
		if strings.Contains(line, words) {
			n++
		}
	}
	return n
}

// A failing policy does not change the assignment. The error is logged once, and not at every retry; it is in
// the status until the policy succeeds.
func TestPolicyFails(t *testing.T) {
	for _, test := range []struct {
		name string
		how  func() error
		want string
	}{
		{"errors", func() error { return errors.New("no idea") }, "no idea"},
		{"panics", func() error { panic("at the disco") }, "at the disco"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				policy, said := &moody{}, &diary{}
				c.policy = func(leasehold.Namespace, string) partition.Policy { return policy }
				c.logs = said
				c.start("m1")
				c.create("m1", pool())
				a := c.join("a")
				eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })

				policy.fails(test.how)
				b := c.join("b")
				time.Sleep(time.Minute)
				if !complete(a) {
					t.Error("a has lost leases because of a failing policy")
				}
				if n := said.count(test.want); n != 1 {
					t.Errorf("in a minute the error is logged %d times, want once: %q", n, said.lines)
				}
				status := c.status("m1").GetNamespaces()[0]
				if !status.GetReady() || !contains(status.GetProblem(), test.want) {
					t.Errorf("the status is %v", status)
				}

				policy.fails(func() error { return nil })
				eventually(t, 10*time.Second, "b has its half", func() bool { return complete(a, b) && len(b.Leases()) > 0 })
				time.Sleep(10 * time.Second)
				if status := c.status("m1").GetNamespaces()[0]; status.GetProblem() != "" {
					t.Errorf("after the policy succeeds the status is %v", status)
				}
			})
		})
	}
}

// A policy that fails with another error each time does not flood the log.
func TestPolicyErrorsAreRateLimited(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		policy, said, times := &moody{}, &diary{}, 0
		c.policy = func(leasehold.Namespace, string) partition.Policy { return policy }
		c.logs = said
		c.start("m1")
		c.create("m1", pool())
		a := c.join("a")
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		policy.fails(func() error { times++; return fmt.Errorf("excuse %d", times) })
		c.join("b")
		time.Sleep(time.Minute)
		if n := said.count("excuse"); n < 2 || n > 7 {
			t.Errorf("in a minute %d errors are logged, want one in 10 s", n)
		}
	})
}
