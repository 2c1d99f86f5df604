package propagation

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// A size is a number of listeners, and of the connections they share.
type size struct{ listeners, conns int }

func (s size) own() bool { return s.listeners == s.conns }

func (s size) String() string {
	if s.own() {
		return fmt.Sprintf("%s, a connection each", report.Thousands(float64(s.listeners)))
	}
	return fmt.Sprintf("%s over %d connections", report.Thousands(float64(s.listeners)), s.conns)
}

// few is the number of connections if listeners share them.
const few = 100

type contestant struct {
	*service
	listeners *proc.Process
}

// startContestant starts a service and its listeners.
func startContestant(ctx context.Context, dir string, s size, e starter) (c *contestant, err error) {
	c = &contestant{}
	if c.service, err = e.start(ctx, dir, s); err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	c.name = e.name
	c.listeners, err = proc.Start(ctx, roleListeners, ListenersConfig{Addr: c.addr, Dialect: c.dialect, Streams: s.listeners, Conns: s.conns})
	if err != nil {
		c.close()
		return nil, fmt.Errorf("%s, %v: %w", e.name, s, err)
	}
	return c, nil
}

func (c *contestant) end() {
	c.listeners.Close()
	c.close()
}

// turn makes a change, and waits until all listeners have received it. If another change is needed
// to make the next possible, it waits for that, too, because it would disturb the next turn.
func (c *contestant) turn(ctx context.Context, bytes int) (r Received, err error) {
	defer func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} else if err != nil {
			err = fmt.Errorf("%s: %w", c.name, err)
		}
	}()
	made, err := c.change(ctx, bytes)
	if err != nil {
		return r, err
	}
	if err := c.listeners.Call("Wait", made, &r); err != nil || c.undo == nil {
		return r, err
	}
	if made, err = c.undo(); err != nil {
		return r, err
	}
	return r, c.listeners.Call("Wait", made, &Received{})
}

type outcome struct {
	name   string
	halves []float64 // until half of the listeners received the change, by turn, in milliseconds
	turns  []float64 // until the last listener received it
	bytes  int
}

func (o outcome) last() report.Summary { return report.Summarise(o.turns) }

// contest gives all contestants a turn in each round, with changes of as many bytes as those of
// the lease table, which an extra turn measures.
func contest(ctx context.Context, all []*contestant, rounds int, step func(round int)) ([]outcome, error) {
	bytes := 0
	for _, c := range all {
		for range 2 { // the first determines how many bytes etcd adds to a value
			t, err := c.turn(ctx, bytes)
			if err != nil {
				return nil, err
			}
			if c.name == nameLeasehold {
				bytes = t.Bytes
			}
			c.bytes += t.Bytes - bytes
		}
	}
	outcomes := make([]outcome, len(all))
	err := report.Rounds(ctx, rounds, len(all), func(round, i int) error {
		t, err := all[i].turn(ctx, bytes)
		if err != nil {
			return err
		}
		o := &outcomes[i]
		o.name, o.halves, o.turns, o.bytes = all[i].name, append(o.halves, milliseconds(t.Half)), append(o.turns, milliseconds(t.Last)), t.Bytes
		step(round)
		return nil
	})
	return outcomes, err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
