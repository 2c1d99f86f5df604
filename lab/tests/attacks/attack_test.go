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

// attacks counts the cases that were tried, on managers with certificates and a policy, on
// what stands beside those, and on managers in plain text.
var attacks struct{ secured, beside, plain atomic.Int32 }

// attack tries one case: whatever it does, the honest must not notice.
func (c *castle) attack(t *testing.T, name string, do func(t *testing.T)) {
	t.Helper()
	c.costly(t, name, frameCost, do)
}

// costly is attack for what may cost more.
func (c *castle) costly(t *testing.T, name string, most int64, do func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		c.count()
		c.during(t, most, func() { do(t) })
	})
}

func (c *castle) count() {
	switch {
	case c.beside:
		attacks.beside.Add(1)
	case c.secured != nil:
		attacks.secured.Add(1)
	default:
		attacks.plain.Add(1)
	}
}

// tell says how many attacks there were.
func tell(out io.Writer) {
	secured, beside, plain := attacks.secured.Load(), attacks.beside.Load(), attacks.plain.Load()
	_, _ = fmt.Fprintf(out, "siege: %d attacks: %d on managers with certificates and a policy, %d on gateway, agent and owners beside them, %d in plain text\n",
		secured+beside+plain, secured, beside, plain)
}

// A line is one of the manager's log.
type line struct {
	Msg, Caller, Method, Why string
	Audit                    bool
}

// lines are what the manager has logged so far.
func (c *castle) lines(t *testing.T) (all []line) {
	t.Helper()
	text, err := os.ReadFile(c.log)
	if err != nil {
		t.Fatal(err)
	}
	for said := range bytes.Lines(text) {
		var l line
		if json.Unmarshal(said, &l) == nil { // the greeting is none
			all = append(all, l)
		}
	}
	return all
}

// wantRefusal wants it to be written down that somebody was refused a method.
func (c *castle) wantRefusal(t *testing.T, caller, fullMethod, why string) {
	t.Helper()
	method := fullMethod[strings.LastIndexByte(fullMethod, '/')+1:]
	for _, l := range c.lines(t) {
		if l.Audit && l.Msg == "call denied" && strings.HasPrefix(l.Caller, caller) && l.Method == method && strings.Contains(l.Why, why) {
			return
		}
	}
	t.Errorf("the audit does not say that %s was refused %s because it %q", caller, method, why)
}
