package lan

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// mailbox is the device of a host, which stores the packets.
type mailbox struct {
	mu  sync.Mutex
	got []byte
}

func (m *mailbox) Write(packet []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = append(m.got, packet...)
	return len(packet), nil
}

func (m *mailbox) take() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.got = nil }()
	return string(m.got)
}

func (*mailbox) Read([]byte) (int, error) { select {} }
func (*mailbox) Close() error             { return nil }

// TestPacketsAreDeliveredWhenDue, in their order if they are due at the same time.
func TestPacketsAreDeliveredWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &mailbox{}
		h, d := &Host{device: box}, newDelayer()
		defer d.close()
		d.add(30*time.Millisecond, h, []byte("d"))
		d.add(10*time.Millisecond, h, []byte("a"))
		d.add(10*time.Millisecond, h, []byte("b"))
		d.add(20*time.Millisecond, h, []byte("c"))
		for i, want := range []string{"", "ab", "c", "d"} {
			synctest.Wait()
			if got := box.take(); got != want {
				t.Errorf("after %d0 ms: %q, want %q", i, got, want)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}
