package main

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/demo"
)

// A narrator tells a demo as lines of a log. It is for one goroutine.
type narrator struct {
	out    screen
	silent bool
	told   int           // the number of the last event
	said   time.Duration // into the demo, when the last figures were written
}

func (n *narrator) tell(s demo.Snapshot) {
	if n.silent {
		return
	}
	for _, e := range s.Events {
		if e.Number > n.told {
			n.told = e.Number
			n.out.say("%s\n", eventLine(e))
		}
	}
	if s.Elapsed-n.said >= lineEvery {
		n.said = s.Elapsed
		n.out.say("        %s\n", figures(&s))
	}
}

func eventLine(e demo.Event) string { return fmt.Sprintf("%6.1fs %s", e.At.Seconds(), e.Text) }

// figures is a demo in one line.
func figures(s *demo.Snapshot) string {
	r := &s.Report
	return fmt.Sprintf("%.0f requests/s, %s, %s, %s, %s",
		s.PerSecond, counted(int(r.Requests), "request"), counted(int(r.Failures), "failure"),
		counted(int(r.Losses), "loss notice"), dualText(r.DualOwnership))
}

func dualText(n uint64) string {
	text := counted(int(n), "dual ownership")
	if n == 0 {
		return good(text)
	}
	return bad(text)
}
