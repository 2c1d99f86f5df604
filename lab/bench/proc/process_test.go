package proc

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test's binary run in roles, as a benchmark does.
func TestMain(m *testing.M) {
	Play(map[string]Role{"adder": RoleOf(startAdder)})
	os.Exit(m.Run())
}

// Adder adds to a number that it was configured with.
type Adder struct{ number int }

func startAdder(_ context.Context, number int) (*Adder, error) {
	if number < 0 {
		return nil, errors.New("a negative number")
	}
	return &Adder{number}, nil
}

// Add is called by the test.
func (a *Adder) Add(n int, sum *int) error {
	if n == 0 {
		return errors.New("nothing to add")
	}
	*sum = a.number + n
	return nil
}

func (*Adder) Close() error { return nil }

func startAdders(ctx context.Context, t *testing.T) Group {
	t.Helper()
	g, err := StartGroup(ctx, "adder", 2, func(i int) any { return 10 * i })
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestCalls(t *testing.T) {
	g := startAdders(t.Context(), t)
	if got, err := CallAll[int](g, "Add", 7); err != nil || got[0] != 7 || got[1] != 17 {
		t.Errorf("%v, %v", got, err)
	}
	for method, want := range map[string]string{"Add": "nothing to add", "Dance": "can't find method"} {
		if err := g[0].Call(method, 0, new(int)); err == nil || !strings.HasPrefix(err.Error(), "adder: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", method, err, want)
		}
	}
	if used, err := g.CPU(); err != nil || used <= 0 {
		t.Errorf("%v, %v", used, err)
	}
	g.Close()
	for _, p := range g {
		if p.process.Alive() {
			t.Errorf("process %d still runs", p.process.Pid())
		}
		if _, err := os.Stat(p.process.Launch.Log); !os.IsNotExist(err) {
			t.Errorf("its log was not removed: %v", err)
		}
	}
}

func TestTerminate(t *testing.T) {
	p, err := Start(t.Context(), "adder", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Terminate(t.Context()); err != nil || p.process.Alive() {
		t.Errorf("it runs: %v, %v", p.process.Alive(), err)
	}
	p.Close() // does no harm
}

func TestStartReportsErrors(t *testing.T) {
	for name, config := range map[string]any{"a negative number": -1, "configuration of a process": "x"} {
		if _, err := Start(t.Context(), "adder", config); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

// TestRolesStartNoProcesses: a program without Play does not start itself again and
// again.
func TestRolesStartNoProcesses(t *testing.T) {
	t.Setenv(roleVariable, "adder")
	if _, err := Start(t.Context(), "adder", 1); err == nil || !strings.Contains(err.Error(), "proc.Play") {
		t.Errorf("got %v", err)
	}
}

// TestInterrupt: all processes end when the context does.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := startAdders(ctx, t)
	defer g.Close()
	cancel()
	err := Until(t.Context(), time.Millisecond, func(context.Context) error {
		if g[0].process.Alive() || g[1].process.Alive() {
			return errors.New("they still run")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := CallAll[int](g, "Add", 1); err == nil {
		t.Error("processes that have ended can be called")
	}
}

func TestUntil(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	calls, broken, over := 0, errors.New("broken"), errors.New("over")
	err := Until(ctx, time.Millisecond, func(context.Context) error {
		if calls++; calls == 3 {
			cancel(over)
		}
		return broken
	})
	if !errors.Is(err, broken) || !errors.Is(err, over) || calls != 3 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// TestCleanup: the last is ended first, and each once.
func TestCleanup(t *testing.T) {
	var c Cleanup
	var ended string
	for _, name := range []string{"a", "b"} {
		c.Add(func() { ended += name })
	}
	c.Close()
	if c.Close(); ended != "ba" {
		t.Errorf("ended %q", ended)
	}
}
