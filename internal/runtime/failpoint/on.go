//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// Variable is the environment variable that arms points when a process starts.
const Variable = "LEASEHOLD_FAILPOINTS"

// armory is what the points of this process do. It is the one global that there is:
// whoever passes a point has nothing else to ask.
var armory = struct {
	sync.Mutex
	environment sync.Once
	armed       map[string]*trigger
	passed      map[string]int
}{armed: make(map[string]*trigger), passed: make(map[string]int)}

// Here is a place to die or to stand still at.
func Here(name string) { pass(name) }

// Fail is a place at which an operation may fail: then it returns why.
func Fail(name string) error {
	if pass(name) != fail {
		return nil
	}
	return leasehold.Errorf("failpoint", leasehold.ErrUnavailable, name, "it fails on purpose")
}

// Drop is a place at which something may be lost: then it returns true.
func Drop(name string) bool { return pass(name) == drop }

// pass does what a point is armed to do, and returns what is left for the caller.
func pass(name string) action {
	armory.environment.Do(func() {
		if text := os.Getenv(Variable); text != "" {
			if err := Arm(text); err != nil {
				panic(err) // whoever set it believes that something is tested
			}
		}
	})
	armory.Lock()
	armory.passed[name]++
	t := armory.armed[name]
	if t == nil || !t.due() {
		armory.Unlock()
		return nothing
	}
	does := *t
	armory.Unlock()
	if does.call != nil {
		does.call()
		return nothing
	}
	fmt.Fprintf(os.Stderr, "failpoint %s: %s\n", name, does.action)
	switch does.action {
	case kill:
		end()
	case pause:
		time.Sleep(does.pause)
	default: // is for the caller
	}
	return does.action
}

// end ends the process as nothing but kill -9 does: nobody is told, nothing is flushed.
func end() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // it takes a moment
}

// Arm arms points as the environment variable does, in place of what they were armed
// with. If anything is wrong with the text, nothing is.
func Arm(text string) error {
	all, err := parse(text)
	if err != nil {
		return err
	}
	armory.Lock()
	defer armory.Unlock()
	for name, t := range all {
		armory.armed[name] = t
	}
	return nil
}

// Once has a function called the next time that a point is passed, on the goroutine that
// does: for tests that know better what is to happen.
func Once(name string, call func()) {
	if find(name) == nil {
		panic("no such failpoint: " + name)
	}
	armory.Lock()
	defer armory.Unlock()
	armory.armed[name] = &trigger{call: call, times: 1}
}

// Who returns which node of a cluster in one process passes a point: the label "node" of the
// goroutine, which those that it starts inherit; "" if it has none. It takes
// GODEBUG=tracebacklabels=1, without which labels cannot be read.
func Who() string {
	text := make([]byte, 512)
	text = text[:runtime.Stack(text, false)]
	found := regexp.MustCompile(`"node": "(\w+)"`).FindSubmatch(text)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// Reset disarms all points, and forgets how often they were passed.
func Reset() {
	armory.Lock()
	defer armory.Unlock()
	clear(armory.armed)
	clear(armory.passed)
}

// Passed returns how often a point was passed.
func Passed(name string) int {
	armory.Lock()
	defer armory.Unlock()
	return armory.passed[name]
}

// Environ takes what is meant for failpoints out of an environment, and says what is
// wrong with it.
func Environ(environ []string) ([]string, error) {
	var rest []string
	var wrong error
	for _, variable := range environ {
		text, ours := strings.CutPrefix(variable, Variable+"=")
		if !ours {
			rest = append(rest, variable)
			continue
		}
		if _, err := parse(text); err != nil {
			wrong = err
		}
	}
	return rest, wrong
}
