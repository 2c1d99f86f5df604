package proc

import (
	"net"
	"strconv"
	"sync"
	"testing"
)

// TestFreePorts: concurrent searches return distinct ports, although no process listens on them
// yet, and no port that is in use.
func TestFreePorts(t *testing.T) {
	turn.Lock()
	taken := firstPort + (turn.next+5)%ports
	turn.Unlock()
	// Another process may use it, which is fine.
	if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(taken))); err == nil {
		defer l.Close() //nolint:errcheck // cleanup only
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
		t.Errorf("port %d was returned although it is in use", taken)
	}
	if _, err := FreePorts(ports + 1); err == nil {
		t.Error("more ports were returned than exist")
	}
}
