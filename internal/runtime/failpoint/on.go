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

// registry has the armed points of this process. It is a global, because points have no other
// context.
var registry = struct {
	sync.Mutex
	environment sync.Once
	armed       map[string]*trigger
	passed      map[string]int
}{armed: make(map[string]*trigger), passed: make(map[string]int)}

// Here is a point that can kill or pause.
func Here(name string) { pass(name) }

// Fail is a point that can fail an operation with the returned error.
func Fail(name string) error {
	if pass(name) != fail {
		return nil
	}
	return leasehold.Errorf("failpoint", leasehold.ErrUnavailable, name, "injected failure")
}

// Drop is a point that can drop a message or result: it returns true.
func Drop(name string) bool { return pass(name) == drop }

// pass runs the action of a point, and returns it for the caller.
func pass(name string) action {
	registry.environment.Do(func() {
		if text := os.Getenv(Variable); text != "" {
			if err := Arm(text); err != nil {
				panic(err) // the test would pass without testing anything
			}
		}
	})
	registry.Lock()
	registry.passed[name]++
	t := registry.armed[name]
	if t == nil || !t.due() {
		registry.Unlock()
		return nothing
	}
	armed := *t
	registry.Unlock()
	if armed.call != nil {
		armed.call()
		return nothing
	}
	fmt.Fprintf(os.Stderr, "failpoint %s: %s\n", name, armed.action)
	switch armed.action {
	case kill:
		killProcess()
	case pause:
		time.Sleep(armed.pause)
	default: // for the caller
	}
	return armed.action
}

// killProcess ends the process like kill -9, without running or flushing anything.
func killProcess() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // until the signal arrives
}

// Arm arms points like the environment variable, and replaces their previous actions. An error arms
// none.
func Arm(text string) error {
	all, err := parse(text)
	if err != nil {
		return err
	}
	registry.Lock()
	defer registry.Unlock()
	for name, t := range all {
		registry.armed[name] = t
	}
	return nil
}

// Once calls a function at the next pass of a point, on the goroutine that passes it.
func Once(name string, call func()) {
	if find(name) == nil {
		panic("no such failpoint: " + name)
	}
	registry.Lock()
	defer registry.Unlock()
	registry.armed[name] = &trigger{call: call, times: 1}
}

// Who returns the node that passes a point, in a cluster within one process: the pprof label "node" of the goroutine,
// which the goroutines that it starts inherit; "" without label. It requires GODEBUG=tracebacklabels=1.
func Who() string {
	text := make([]byte, 512)
	text = text[:runtime.Stack(text, false)]
	found := regexp.MustCompile(`"node": "(\w+)"`).FindSubmatch(text)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// Reset disarms all points and clears their counts.
func Reset() {
	registry.Lock()
	defer registry.Unlock()
	clear(registry.armed)
	clear(registry.passed)
}

// Passed returns the number of passes of a point.
func Passed(name string) int {
	registry.Lock()
	defer registry.Unlock()
	return registry.passed[name]
}

// Environ returns an environment without the variable for failpoints, and an error if that is
// invalid.
func Environ(environ []string) ([]string, error) {
	var rest []string
	var wrong error
	for _, variable := range environ {
		text, found := strings.CutPrefix(variable, Variable+"=")
		if !found {
			rest = append(rest, variable)
			continue
		}
		if _, err := parse(text); err != nil {
			wrong = err
		}
	}
	return rest, wrong
}
