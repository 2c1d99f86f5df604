package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/leasehold-dev/leasehold/lab/chaos/actor"
	"github.com/leasehold-dev/leasehold/lab/chaos/leaks"
)

// Usage adds the resource usage of each process to a log. Callers report theirs in their history.
func (c *Cluster) Usage(ctx context.Context, into *leaks.Log, callers func(name string) leaks.Sample) {
	for _, m := range c.All() {
		pid := m.Pid()
		outside, err := leaks.Outside(pid)
		if err != nil {
			continue // it has ended, and will be restarted
		}
		var inside leaks.Sample
		switch m.Role {
		case Manager, Store:
			var page map[string]float64
			page, err = c.metrics(ctx, m)
			inside = leaks.FromMetrics(page)
		case Owner, Server:
			inside, err = get(ctx, c.Operator.Dial, m.Host.At(ownerPort)+actor.UsagePath, leaks.Read)
		case Caller:
			inside = callers(m.Name)
		}
		if err == nil { // a busy process is sampled next time
			into.Add(m.Name, pid, outside, inside)
		}
	}
}

// StoreWorks reports whether most of the members that store the tables have a leader, or there are none. A
// member that has just been paused may still have its last metrics.
func (c *Cluster) StoreWorks(ctx context.Context) bool {
	keepers := c.Keepers()
	var (
		all  sync.WaitGroup
		have atomic.Int64
	)
	for _, m := range keepers {
		all.Go(func() {
			if page, err := c.metrics(ctx, m); err == nil && page["etcd_server_has_leader"] == 1 {
				have.Add(1)
			}
		})
	}
	all.Wait()
	return 2*int(have.Load()) > len(keepers) || len(keepers) == 0
}

func (c *Cluster) metrics(ctx context.Context, m *Member) (map[string]float64, error) {
	addr := m.Addr
	if m.Role == Manager {
		addr = m.Host.At(pagePort)
	}
	return get(ctx, c.Operator.Dial, addr+"/metrics", leaks.ReadMetrics)
}

// get reads a page from the operator's host. It keeps no connection, which would be an open descriptor of the process.
func get[T any](ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), url string, read func(io.Reader) (T, error)) (found T, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+url, nil)
	if err != nil {
		return found, err
	}
	answer, err := (&http.Transport{DisableKeepAlives: true, DialContext: dial}).RoundTrip(request)
	if err != nil {
		return found, err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	if answer.StatusCode != http.StatusOK {
		return found, fmt.Errorf("%s: %s", url, answer.Status)
	}
	return read(answer.Body)
}
