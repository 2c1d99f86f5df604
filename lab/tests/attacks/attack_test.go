//go:build linux

package attacks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// attacks counts the cases: on managers with TLS and a policy, on gateway, agent and owners
// beside those, and on managers in plain text.
var attacks struct{ secured, adjacent, plain atomic.Int32 }

// attack runs one case, and checks that the honest clients are not affected.
func (c *testbed) attack(t *testing.T, name string, do func(t *testing.T)) {
	t.Helper()
	c.costly(t, name, frameCost, do)
}

// costly is attack with another bound on the manager's memory growth.
func (c *testbed) costly(t *testing.T, name string, most int64, do func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		c.count()
		c.check(t, most, func() { do(t) })
	})
}

func (c *testbed) count() {
	switch {
	case c.adjacent:
		attacks.adjacent.Add(1)
	case c.secured != nil:
		attacks.secured.Add(1)
	default:
		attacks.plain.Add(1)
	}
}

// printSummary prints the number of cases.
func printSummary(out io.Writer) {
	secured, adjacent, plain := attacks.secured.Load(), attacks.adjacent.Load(), attacks.plain.Load()
	_, _ = fmt.Fprintf(out, "%d attacks: %d on managers with TLS and a policy, %d on gateway, agent and owners beside them, %d in plain text\n",
		secured+adjacent+plain, secured, adjacent, plain)
}

// A line is a record of the manager's log.
type line struct {
	Msg, Caller, Method, Why string
	Audit                    bool
}

// lines returns the manager's log so far.
func (c *testbed) lines(t *testing.T) (all []line) {
	t.Helper()
	text, err := os.ReadFile(c.log)
	if err != nil {
		t.Fatal(err)
	}
	for text := range bytes.Lines(text) {
		var l line
		if json.Unmarshal(text, &l) == nil { // the first lines are plain text
			all = append(all, l)
		}
	}
	return all
}

// wantAudited requires an audit record of a refused call.
func (c *testbed) wantAudited(t *testing.T, caller, fullMethod, why string) {
	t.Helper()
	method := fullMethod[strings.LastIndexByte(fullMethod, '/')+1:]
	for _, l := range c.lines(t) {
		if l.Audit && l.Msg == "call denied" && strings.HasPrefix(l.Caller, caller) && l.Method == method && strings.Contains(l.Why, why) {
			return
		}
	}
	t.Errorf("no audit record: %s refused to call %s, reason %q", caller, method, why)
}
