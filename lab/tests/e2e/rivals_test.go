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

// rivalry sends requests for all keys to all servers, all the time.
//
// A server says under which generation it has carried out a request. Generations rise. So
// if a request is carried out under a lower one than another that was over before it was
// sent, two servers believed at a time that they own the key: what the later one wrote,
// or something before it, is lost.
type rivalry struct {
	keys    []string
	servers []string

	mu       sync.Mutex
	newest   map[string]uint64 // by key: the highest generation of what is over
	last     map[string]round  // by server
	count    int
	failures []string
}

// A round is one request for each key to one server.
type round struct {
	began  time.Time
	served []string // the keys for which it was carried out
}

// rivals goes on until the test ends.
func rivals(t *testing.T, servers ...string) *rivalry {
	t.Helper()
	w := &rivalry{servers: servers, newest: map[string]uint64{}, last: map[string]round{}}
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
		t.Logf("%d requests were carried out", w.count)
	})
	return w
}

// round asks a server for all keys.
func (w *rivalry) round(ctx context.Context, client *http.Client, addr string) {
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

// put has a server change a key, and reports whether it would.
func (w *rivalry) put(ctx context.Context, client *http.Client, addr, key string) bool {
	w.mu.Lock()
	floor := w.newest[key]
	w.mu.Unlock()
	generation, err := change(ctx, client, addr, key)
	if err != nil {
		select { // whoever is not there need not be asked without a pause
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
		}
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if generation < floor && len(w.failures) < 10 {
		w.failures = append(w.failures, fmt.Sprintf("%s has changed %q under generation %d, after it was changed under %d", addr, key, generation, floor))
	}
	w.newest[key] = max(w.newest[key], generation)
	w.count++
	return true
}

// change returns the generation under which a key was changed.
func change(ctx context.Context, client *http.Client, addr, key string) (uint64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, keyPath(addr, key), strings.NewReader("x"))
	if err != nil {
		return 0, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, errRefused
	}
	return strconv.ParseUint(answer.Header.Get("Generation"), 10, 64)
}

// serving waits until, in a round that begins after the call, just these servers carry
// requests out and, if there are any, every key has one.
func (w *rivalry) serving(t *testing.T, what string, want ...string) {
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
				return fmt.Errorf("%s is still being asked", addr)
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
			return fmt.Errorf("%v have %d of %d keys", have, len(owned), len(w.keys))
		}
		return nil
	})
}

// check fails the test if there were two owners.
func (w *rivalry) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.failures {
		t.Error(f)
	}
	w.failures = nil
}
