//go:build unix

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// dualWriters continuously sends requests for all keys to all servers, to detect dual
// ownership.
//
// A server returns the generation under which it executed a request. Generations increase.
// So a request under a lower generation than another request that had finished before it was
// sent shows that two servers owned the key at the same time.
type dualWriters struct {
	keys    []string
	servers []string

	mu       sync.Mutex
	newest   map[string]uint64 // by key: the highest generation of finished requests
	last     map[string]round  // by server
	count    int
	failures []string
}

// A round is one request for each key to one server.
type round struct {
	began  time.Time
	served []string // the keys for which it was executed
}

// startDualWriters starts requests that continue until the test ends.
func startDualWriters(t *testing.T, servers ...string) *dualWriters {
	t.Helper()
	w := &dualWriters{servers: servers, newest: map[string]uint64{}, last: map[string]round{}}
	for i := range 24 {
		w.keys = append(w.keys, "key "+strconv.Itoa(i))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, addr := range servers {
		running.Go(func() {
			client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				w.round(ctx, client, addr)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
		w.check(t)
		t.Logf("%d requests were executed", w.count)
	})
	return w
}

// round sends a request for each key to a server.
func (w *dualWriters) round(ctx context.Context, client *http.Client, addr string) {
	r := round{began: time.Now()}
	for _, key := range w.keys {
		if w.put(ctx, client, addr, key) {
			r.served = append(r.served, key)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[addr] = r
}

// put changes a key at a server, and reports whether the server executed the request.
func (w *dualWriters) put(ctx context.Context, client *http.Client, addr, key string) bool {
	w.mu.Lock()
	floor := w.newest[key]
	w.mu.Unlock()
	generation, err := change(ctx, client, addr, key)
	if err != nil {
		select { // backoff for a server that is down
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
		}
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if generation < floor && len(w.failures) < 10 {
		w.failures = append(w.failures, fmt.Sprintf("%s changed %q under generation %d after a change under %d", addr, key, generation, floor))
	}
	w.newest[key] = max(w.newest[key], generation)
	w.count++
	return true
}

// change changes a key, and returns the generation.
func change(ctx context.Context, client *http.Client, addr, key string) (uint64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, keyPath(addr, key), strings.NewReader("x"))
	if err != nil {
		return 0, err
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, errRefused
	}
	return strconv.ParseUint(response.Header.Get("Generation"), 10, 64)
}

// waitForServers waits until, in a round that starts after the call, exactly these servers
// execute requests and, if there are any, every key has an owner.
func (w *dualWriters) waitForServers(t *testing.T, what string, want ...string) {
	t.Helper()
	from := time.Now()
	slices.Sort(want)
	eventually(t, what, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		owned := map[string]bool{}
		var have []string
		for _, addr := range w.servers {
			r := w.last[addr]
			if r.began.Before(from) {
				return fmt.Errorf("a round at %s is in progress", addr)
			}
			if len(r.served) > 0 {
				have = append(have, addr)
			}
			for _, key := range r.served {
				owned[key] = true
			}
		}
		slices.Sort(have)
		if !slices.Equal(have, want) || len(want) > 0 && len(owned) < len(w.keys) {
			return fmt.Errorf("%v own %d of %d keys", have, len(owned), len(w.keys))
		}
		return nil
	})
}

// check fails the test if a key had two owners.
func (w *dualWriters) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.failures {
		t.Error(f)
	}
	w.failures = nil
}
