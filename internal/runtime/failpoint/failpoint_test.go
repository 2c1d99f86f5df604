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

func TestNothingHappensUnlessArmed(t *testing.T) {
	t.Cleanup(Reset)
	Here("manager/leads")
	if err := Fail("store/appended"); err != nil || Drop("owner/before-send") {
		t.Errorf("a point that is not armed does something: %v", err)
	}
	if n := Passed("store/appended"); n != 1 {
		t.Errorf("passed %d times, want once", n)
	}
}

// after= lets a point pass, times= says how often it happens.
func TestWhenItHappens(t *testing.T) {
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
				t.Errorf("it happens %s, want %s", got, want)
			}
		})
	}
}

func TestErrorsSayThatTheyAreOnPurpose(t *testing.T) {
	armed(t, "store/appended=error")
	err := Fail("store/appended")
	if !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), `"store/appended": it fails on purpose`) {
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
			t.Error("it was dropped")
		}
	}
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
}

// A goroutine belongs to the node of whoever started it.
func TestWho(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1")
	if who := Who(); who != "" {
		t.Errorf("the test is node %q", who)
	}
	pprof.Do(t.Context(), pprof.Labels("node", "m1"), func(context.Context) {
		var started sync.WaitGroup
		started.Go(func() {
			if who := Who(); who != "m1" {
				t.Errorf("it is node %q, want m1", who)
			}
		})
		started.Wait()
	})
}

// Whoever arms something that does not exist believes that it is tested.
func TestWrongTextIsRefused(t *testing.T) {
	for text, want := range map[string][]string{
		"owner/nonsense=kill":                           {`no failpoint "owner/nonsense"`, "manager/leads, ", "agent/before-line"},
		"owner/left":                                    {`owner/left cannot ""`, "[kill pause]"},
		"owner/left=burn":                               {`owner/left cannot "burn"`},
		"owner/left=drop":                               {`owner/left cannot "drop"`},
		"store/appended=drop":                           {"[kill pause error]"},
		"owner/before-send=error":                       {"[kill pause drop]"},
		"owner/left=kill:before=3":                      {`no option "before"`, "after, for, times"},
		"owner/left=kill:for=3s":                        {`no option "for" for "kill"`},
		"owner/left=kill:after=-1":                      {`"-1" is no value for after`},
		"owner/left=pause:for=3":                        {`"3" is no value for for`},
		"owner/left=kill:times=":                        {`"" is no value for times`},
		"owner/left=kill;owner/left=pause":              {"owner/left is armed twice"},
		"owner/before-send=drop;owner/nonsense=kill;;;": {"owner/nonsense=kill"},
	} {
		err := Arm(text)
		if !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
		for _, w := range want {
			if err != nil && !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is not in: %v", text, w, err)
			}
		}
		if _, fromEnvironment := Environ([]string{Variable + "=" + text}); fromEnvironment == nil || fromEnvironment.Error() != err.Error() {
			t.Errorf("%s: in the environment: %v", text, fromEnvironment)
		}
	}
	if Drop("owner/before-send") {
		t.Error("what was refused was armed in part")
	}
}

// Other settings are none of ours, and ours is none of theirs.
func TestEnvironment(t *testing.T) {
	rest, err := Environ([]string{"A=1", Variable + "=owner/left=kill", "LEASEHOLD_LISTEN=x"})
	if err != nil || !slices.Equal(rest, []string{"A=1", "LEASEHOLD_LISTEN=x"}) {
		t.Errorf("left %q, %v", rest, err)
	}
}

// A real process is killed at the third pass, without a chance to do anything about it.
func TestKill(t *testing.T) {
	passes := func(text string) (out string, said string, err error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"=yes", Variable+"="+text)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		text0, err := cmd.Output()
		return string(text0), stderr.String(), err
	}
	out, said, err := passes("manager/leads=kill:after=2")
	if err == nil || err.Error() != "signal: killed" || out != "passed\npassed\n" || said != "failpoint manager/leads: kill\n" {
		t.Errorf("%v, out %q, said %q", err, out, said)
	}
	if _, said, err := passes("manager/leeds=kill"); err == nil || !strings.Contains(said, `no failpoint "manager/leeds"`) {
		t.Errorf("a name that does not exist: %v, said %q", err, said)
	}
}
