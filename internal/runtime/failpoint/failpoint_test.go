//go:build failpoints

package failpoint

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
)

// childVariable is set in a copy of this test that passes points until one ends it.
const childVariable = "LEASEHOLD_TEST_PASSES"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		for range 5 {
			Here("manager/leads")
			_, _ = os.Stdout.WriteString("passed\n")
		}
		return
	}
	leak.Main(m)
}

func armed(t *testing.T, text string) {
	t.Helper()
	t.Cleanup(Reset)
	if err := Arm(text); err != nil {
		t.Fatal(err)
	}
}

func TestUnarmedPointsDoNothing(t *testing.T) {
	t.Cleanup(Reset)
	Here("manager/leads")
	if err := Fail("store/appended"); err != nil || Drop("owner/before-send") {
		t.Errorf("a point that is not armed acts: %v", err)
	}
	if n := Passed("store/appended"); n != 1 {
		t.Errorf("passed %d times, want once", n)
	}
}

// after= skips passes, times= limits the number of actions.
func TestAfterAndTimes(t *testing.T) {
	for text, want := range map[string]string{
		"owner/before-send=drop":                          "x....",
		"owner/before-send=drop:after=2":                  "..x..",
		"; owner/before-send=drop:times=2 ;":              "xx...",
		"owner/before-send=drop:after=1:times=2":          ".xx..",
		"owner/before-send=drop:after=3:times=0":          "...xx",
		"store/appended=error;owner/before-send=drop":     "x....",
		"owner/before-send=pause:for=0s:times=5":          ".....",
		"owner/before-send=drop:after=0:times=1:after=04": "....x",
	} {
		t.Run(text, func(t *testing.T) {
			armed(t, text)
			got := ""
			for range 5 {
				if Drop("owner/before-send") {
					got += "x"
				} else {
					got += "."
				}
			}
			if got != want {
				t.Errorf("actions %s, want %s", got, want)
			}
		})
	}
}

func TestInjectedError(t *testing.T) {
	armed(t, "store/appended=error")
	err := Fail("store/appended")
	if !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), `"store/appended": injected failure`) {
		t.Errorf("got %v", err)
	}
}

func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for text, want := range map[string]time.Duration{"owner/left=pause": time.Second, "owner/left=pause:for=3ms": 3 * time.Millisecond} {
			armed(t, text)
			begun := time.Now()
			Here("owner/left")
			if took := time.Since(begun); took != want {
				t.Errorf("%s takes %v, want %v", text, took, want)
			}
		}
	})
}

func TestCalls(t *testing.T) {
	t.Cleanup(Reset)
	calls := 0
	Once("owner/before-send", func() { calls++ })
	for range 3 {
		if Drop("owner/before-send") {
			t.Error("Once dropped the message")
		}
	}
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
}

// A goroutine inherits the node of the goroutine that starts it.
func TestWho(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1")
	if who := Who(); who != "" {
		t.Errorf("node of the test: %q", who)
	}
	pprof.Do(t.Context(), pprof.Labels("node", "m1"), func(context.Context) {
		var started sync.WaitGroup
		started.Go(func() {
			if who := Who(); who != "m1" {
				t.Errorf("node %q, want m1", who)
			}
		})
		started.Wait()
	})
}

// Invalid specifications are rejected.
func TestInvalidSpecIsRejected(t *testing.T) {
	for text, want := range map[string][]string{
		"owner/nonsense=kill":                           {`unknown failpoint "owner/nonsense"`, "manager/leads, ", "agent/before-line"},
		"owner/left":                                    {`owner/left does not support ""`, "[kill pause]"},
		"owner/left=burn":                               {`owner/left does not support "burn"`},
		"owner/left=drop":                               {`owner/left does not support "drop"`},
		"store/appended=drop":                           {"[kill pause error]"},
		"owner/before-send=error":                       {"[kill pause drop]"},
		"owner/left=kill:before=3":                      {`unknown option "before"`, "after, for, times"},
		"owner/left=kill:for=3s":                        {`unknown option "for" of "kill"`},
		"owner/left=kill:after=-1":                      {`invalid value "-1" of after`},
		"owner/left=pause:for=3":                        {`invalid value "3" of for`},
		"owner/left=kill:times=":                        {`invalid value "" of times`},
		"owner/left=kill;owner/left=pause":              {"duplicate failpoint owner/left"},
		"owner/before-send=drop;owner/nonsense=kill;;;": {"owner/nonsense=kill"},
	} {
		err := Arm(text)
		if !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
		for _, w := range want {
			if err != nil && !strings.Contains(err.Error(), w) {
				t.Errorf("%s: want %q in: %v", text, w, err)
			}
		}
		if _, fromEnvironment := Environ([]string{Variable + "=" + text}); fromEnvironment == nil || fromEnvironment.Error() != err.Error() {
			t.Errorf("%s: in the environment: %v", text, fromEnvironment)
		}
	}
	if Drop("owner/before-send") {
		t.Error("a rejected specification was armed in part")
	}
}

// Environ removes only the variable for failpoints.
func TestEnviron(t *testing.T) {
	rest, err := Environ([]string{"A=1", Variable + "=owner/left=kill", "LEASEHOLD_LISTEN=x"})
	if err != nil || !slices.Equal(rest, []string{"A=1", "LEASEHOLD_LISTEN=x"}) {
		t.Errorf("left %q, %v", rest, err)
	}
}

// The third pass kills a real process.
func TestKill(t *testing.T) {
	passes := func(text string) (out string, stderr string, err error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"=yes", Variable+"="+text)
		var lines bytes.Buffer
		cmd.Stderr = &lines
		stdout, err := cmd.Output()
		return string(stdout), lines.String(), err
	}
	out, stderr, err := passes("manager/leads=kill:after=2")
	if err == nil || err.Error() != "signal: killed" || out != "passed\npassed\n" || stderr != "failpoint manager/leads: kill\n" {
		t.Errorf("%v, out %q, stderr %q", err, out, stderr)
	}
	if _, stderr, err := passes("manager/leeds=kill"); err == nil || !strings.Contains(stderr, `unknown failpoint "manager/leeds"`) {
		t.Errorf("an unknown name: %v, stderr %q", err, stderr)
	}
}
