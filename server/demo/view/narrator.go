package view

import (
	"fmt"
	"io"
	"time"

	"github.com/leasehold-dev/leasehold/server/demo"
)

// A Narrator writes a demo as lines of a log. It is for one goroutine.
type Narrator struct {
	Out io.Writer

	written int           // number of the last event
	figures time.Duration // time of the last figures
}

// figuresEvery is the interval between two lines with figures.
const figuresEvery = 5 * time.Second

// Watch is for [demo.Run]. It writes what is new. Errors of Out are ignored.
func (n *Narrator) Watch(s demo.Snapshot) {
	for _, e := range s.Events {
		if e.Number > n.written {
			n.written = e.Number
			_, _ = io.WriteString(n.Out, eventLine(e))
		}
	}
	if s.Elapsed-n.figures < figuresEvery {
		return
	}
	n.figures = s.Elapsed
	r := &s.Report
	_, _ = fmt.Fprintf(n.Out, "        %.0f requests/s, %s, %s, %s, %s\n",
		s.PerSecond, count(r.Requests, "request"), count(r.Failures, "failure"), count(r.Losses, "loss notice"), dualText(r))
}

func eventLine(e demo.Event) string { return fmt.Sprintf("%6.1fs %s\n", e.At.Seconds(), e.Text) }
