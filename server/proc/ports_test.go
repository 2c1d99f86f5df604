package proc

import (
	"net"
	"strconv"
	"sync"
	"testing"
)

// Concurrent searches for free ports return different ports, although no process listens on them yet, and
// no port that is in use.
func TestFreePorts(t *testing.T) {
	turn.Lock()
	taken := firstPort + (turn.next+5)%ports
	turn.Unlock()
	// Another process may use it, which is fine.
	if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(taken))); err == nil {
		defer l.Close() //nolint:errcheck // nobody connects
	}
	const callers, each = 20, 25
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		found = make(map[string]int)
	)
	for range callers {
		all.Go(func() {
			addrs, err := FreePorts(each)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, a := range addrs {
				found[a]++
			}
		})
	}
	all.Wait()
	if len(found) != callers*each {
		t.Errorf("%d ports were found, want %d different ones", len(found), callers*each)
	}
	if n := found[net.JoinHostPort("127.0.0.1", strconv.Itoa(taken))]; n > 0 {
		t.Errorf("%d was found, and somebody listens there", taken)
	}
	if _, err := FreePorts(ports + 1); err == nil {
		t.Error("more ports were found than there are")
	}
}
