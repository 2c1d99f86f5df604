package managerconn

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The fourth message without a reply replaces a dead connection, and arrives over the new one. A message
// longer than the flow control window, which blocks its sender, does not prevent this.
func TestDeadConnectionIsReplaced(t *testing.T) {
	for name, length := range map[string]int{"short messages": 0, "long messages": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &manager{addr: "a:1", replies: true}
				n := newNetwork(t, a)
				c := n.client(Config[request, response]{Managers: []string{"a:1"}})
				c.Send("a:1", message(1))
				synctest.Wait()
				n.blackhole()
				for seq := range uint64(4) {
					c.Send("a:1", &request{Seq: seq + 2, Gone: make([]byte, length)})
					time.Sleep(time.Second)
				}
				received, _, _ := a.state()
				if !slices.Equal(received, []uint64{1, 5}) {
					t.Errorf("received %v, want 1 and 5", received)
				}
				if count, why := c.lastDown("a:1"); count != 0 {
					t.Errorf("closing by the link was reported: %v", why)
				}
			})
		})
	}
}

// Reconnects to a manager that never replies become less frequent.
func TestReconnectsToSilentManagerAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &manager{addr: "a:1"}
		c := newNetwork(t, a).client(Config[request, response]{Managers: []string{"a:1"}})
		for seq := range uint64(40) {
			c.Send("a:1", message(seq+1))
			time.Sleep(time.Second)
		}
		received, streams, opened := a.state()
		// Messages 4, 11 and 26 open a new stream, and are the first to count.
		if len(received) != 40 || streams != 1 || opened != 4 {
			t.Errorf("received %d messages on %d streams, %d open; want 40 on 4, 1 open", len(received), opened, streams)
		}
	})
}

// A connection stays open if the manager replies, or has had no time to.
func TestLiveConnectionIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		replies bool
		every   time.Duration
		count   uint64
	}{
		"replies":          {true, time.Second, 30},
		"no time to reply": {false, time.Millisecond, 30},
		"few messages":     {false, time.Minute, 2},
		"slow":             {false, 100 * time.Millisecond, 29},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &manager{addr: "a:1", replies: test.replies}
				c := newNetwork(t, a).client(Config[request, response]{Managers: []string{"a:1"}})
				for seq := range test.count {
					c.Send("a:1", message(seq+1))
					time.Sleep(test.every)
				}
				if _, _, opened := a.state(); opened != 1 {
					t.Errorf("%d streams, want 1", opened)
				}
			})
		})
	}
}
