package managerconn

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A connection that swallows everything is replaced at the third message that
// is not answered, and that message arrives. A message that is too long for
// what may be under way at once keeps its sender waiting, and is no obstacle.
func TestDeadConnectionIsReplaced(t *testing.T) {
	for name, length := range map[string]int{"short messages": 0, "long messages": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &manager{addr: "a:1", answers: true}
				n := newNetwork(t, a)
				c := n.client(Config[request, response]{Managers: []string{"a:1"}})
				c.Send("a:1", message(1))
				synctest.Wait()
				n.forgetConns()
				for seq := range uint64(3) {
					c.Send("a:1", &request{Seq: seq + 2, Gone: make([]byte, length)})
					time.Sleep(time.Second)
				}
				heard, _, _ := a.state()
				if !slices.Equal(heard, []uint64{1, 4}) {
					t.Errorf("heard %v, want 1 and 4", heard)
				}
				if count, why := c.lastDown("a:1"); count != 0 {
					t.Errorf("the end that the link chose was reported: %v", why)
				}
			})
		})
	}
}

// A manager that says nothing, but is there, is dialled anew less and less
// often.
func TestSilentManagerIsSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &manager{addr: "a:1"}
		c := newNetwork(t, a).client(Config[request, response]{Managers: []string{"a:1"}})
		for seq := range uint64(40) {
			c.Send("a:1", message(seq+1))
			time.Sleep(time.Second)
		}
		heard, streams, opened := a.state()
		// At messages 3, 8, 19 and 30: each begins a conversation, and is the
		// first to count.
		if len(heard) != 40 || streams != 1 || opened != 5 {
			t.Errorf("heard %d messages on %d conversations, of which %d are open; want 40 on 5, of which 1 is", len(heard), opened, streams)
		}
	})
}

// One that answers is there, and one that has had no time or no reason to
// answer may be.
func TestLivelyConnectionIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		answers bool
		every   time.Duration
		count   uint64
	}{
		"answers":         {true, time.Second, 30},
		"no time as yet":  {false, time.Millisecond, 30},
		"not asked often": {false, time.Minute, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &manager{addr: "a:1", answers: test.answers}
				c := newNetwork(t, a).client(Config[request, response]{Managers: []string{"a:1"}})
				for seq := range test.count {
					c.Send("a:1", message(seq+1))
					time.Sleep(test.every)
				}
				if _, _, opened := a.state(); opened != 1 {
					t.Errorf("%d conversations, want 1", opened)
				}
			})
		})
	}
}
