package managerconn

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMessagesReachOneOrAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &manager{addr: "a:1", replies: true}, &manager{addr: "b:1", replies: true}
		c := newNetwork(t, a, b).client(Config[request, response]{Managers: []string{"a:1", "b:1"}})
		c.Send("b:1", message(1))
		synctest.Wait()
		c.Send("", message(2))
		synctest.Wait()
		want := map[string][]uint32{"a:1": {2}, "b:1": {1, 2}}
		c.mu.Lock()
		defer c.mu.Unlock()
		if diff := cmp.Diff(want, c.replies); diff != "" {
			t.Errorf("replies (-want +got):\n%s", diff)
		}
		if _, _, opened := b.state(); opened != 1 {
			t.Errorf("%d streams to one manager, want 1 for both messages", opened)
		}
	})
}

// A newer message replaces a queued one.
func TestNewestMessageReplacesWaitingOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &manager{addr: "a:1"}
		n := newNetwork(t, a)
		n.hold = make(chan struct{})
		c := n.client(Config[request, response]{Managers: []string{"a:1"}})
		for seq := range uint64(5) {
			c.Send("a:1", message(seq+1))
			synctest.Wait() // the first is being sent, and waits for the connection
		}
		close(n.hold)
		synctest.Wait()
		if received, _, _ := a.state(); !cmp.Equal(received, []uint64{1, 5}) {
			t.Errorf("received %v, want the first and the newest", received)
		}
	})
}

func TestUnreachableManagerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNetwork(t).client(Config[request, response]{Managers: []string{"a:1"}})
		c.Send("", message(1))
		synctest.Wait()
		count, why := c.lastDown("a:1")
		if count != 1 || !strings.Contains(fmt.Sprint(why), "no listener at a:1") {
			t.Errorf("%d failures, the last: %v", count, why)
		}
		time.Sleep(time.Minute) // no retry without a message
		if count, _ := c.lastDown("a:1"); count != 1 {
			t.Errorf("%d failures after one message", count)
		}
	})
}

func TestNextMessageReopensStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &manager{addr: "a:1", endAfter: 2}
		c := newNetwork(t, a).client(Config[request, response]{Managers: []string{"a:1"}})
		for seq := range uint64(5) {
			c.Send("a:1", message(seq+1))
			synctest.Wait()
		}
		received, streams, opened := a.state()
		if !cmp.Equal(received, []uint64{1, 2, 3, 4, 5}) || streams != 1 || opened != 3 {
			t.Errorf("received %v on %d streams, %d open; want all on 3, 1 open", received, opened, streams)
		}
		count, why := c.lastDown("a:1")
		if count != 2 || !strings.Contains(fmt.Sprint(why), "ended the stream") {
			t.Errorf("%d failures, the last: %v", count, why)
		}
	})
}

// The link reconnects to a restarted manager with the next message.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &manager{addr: "a:1", replies: true}
		n := newNetwork(t, a)
		n.at = map[string]*manager{}
		c := n.client(Config[request, response]{Managers: []string{"a:1"}})
		for seq := range uint64(100) {
			c.Send("a:1", message(seq+1))
			time.Sleep(time.Second)
		}
		n.mu.Lock()
		n.at["a:1"] = a
		n.mu.Unlock()
		for seq := range uint64(6) { // longer than maxBackoff
			c.Send("a:1", message(seq+101))
			time.Sleep(time.Second)
		}
		received, _, _ := a.state()
		if len(received) == 0 || received[len(received)-1] != 106 {
			t.Errorf("received %v, want 106 at the end", received)
		}
	})
}

// After a long outage the leader gives owners the time of a lease to reconnect. A link reconnects within the backoff,
// at most 1.2 s with jitter, and the next message.
func TestReconnectIsFasterThanALease(t *testing.T) {
	const every, bound = 100 * time.Millisecond, 1400 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		a := &manager{addr: "a:1", replies: true}
		n := newNetwork(t, a)
		c := n.client(Config[request, response]{Managers: []string{"a:1"}})
		seq := uint64(0)
		send := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(every) {
				seq++
				c.Send("a:1", message(seq))
			}
		}
		for outage := range 20 {
			n.mu.Lock()
			n.at = map[string]*manager{}
			n.mu.Unlock()
			n.blackhole()
			send(time.Minute + time.Duration(outage)*every)
			n.mu.Lock()
			n.at = map[string]*manager{"a:1": a}
			n.mu.Unlock()
			before := seq
			send(bound)
			synctest.Wait()
			if received, _, _ := a.state(); len(received) == 0 || received[len(received)-1] <= before {
				t.Errorf("outage %d: no message arrived within %v", outage, bound)
			}
		}
	})
}

func TestIdleStreamsAreClosedExceptTheCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &manager{addr: "a:1"}, &manager{addr: "b:1"}
		c := newNetwork(t, a, b).client(Config[request, response]{Managers: []string{"a:1", "b:1"}, Idle: time.Minute})
		c.Send("", message(1))
		synctest.Wait()
		c.Send("b:1", message(2))
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		_, withA, _ := a.state()
		_, withB, _ := b.state()
		if withA != 0 || withB != 1 {
			t.Errorf("%d and %d streams, want only the one to b", withA, withB)
		}
		if count, why := c.lastDown("a:1"); count != 0 {
			t.Errorf("closing by the link was reported: %v", why)
		}
		c.Send("a:1", message(3)) // reopens the stream to a
		synctest.Wait()
		if received, _, _ := a.state(); !cmp.Equal(received, []uint64{1, 3}) {
			t.Errorf("a received %v", received)
		}
	})
}

func TestUnlistedManagersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		managers := []*manager{{addr: "known:1"}}
		for i := range 6 {
			managers = append(managers, &manager{addr: fmt.Sprintf("unlisted%d:1", i)})
		}
		c := newNetwork(t, managers...).client(Config[request, response]{Managers: []string{"known:1"}, MaxUnlisted: 2})
		for _, m := range managers {
			c.Send(m.addr, message(1))
			synctest.Wait()
		}
		var open []string
		for _, m := range managers {
			if _, streams, _ := m.state(); streams > 0 {
				open = append(open, m.addr)
			}
		}
		if want := []string{"known:1", "unlisted4:1", "unlisted5:1"}; !cmp.Equal(open, want) {
			t.Errorf("open: %v, want %v", open, want)
		}
	})
}

// Close ends all goroutines in every state; synctest fails otherwise.
func TestClose(t *testing.T) {
	for name, hang := range map[string]bool{"while connecting": true, "with an open stream": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &manager{addr: "a:1", replies: true}
				n := newNetwork(t, a)
				if hang {
					n.hold = make(chan struct{})
				}
				c := n.client(Config[request, response]{Managers: []string{"a:1"}})
				c.Send("", message(1))
				synctest.Wait()
				c.Close()
				c.Close()
				c.Send("", message(2))
				synctest.Wait()
				if received, streams, _ := a.state(); streams != 0 || len(received) > 1 {
					t.Errorf("%d streams after Close, received %v", streams, received)
				}
				if count, why := c.lastDown("a:1"); count != 0 {
					t.Errorf("Close was reported: %v", why)
				}
			})
		})
	}
}
