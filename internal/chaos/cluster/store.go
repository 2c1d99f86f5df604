package cluster

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
)

// StoreWorks says whether most of those who keep the tables say that they have a leader.
// Where nobody keeps them there is nothing to wait for. Who has just been stopped may say
// what was before.
func (c *Cluster) StoreWorks(ctx context.Context) bool {
	keepers := c.keepers()
	transport := c.transport()
	var (
		all  sync.WaitGroup
		have atomic.Int64
	)
	for _, m := range keepers {
		page := m.Addr
		if m.Role == Manager {
			page = m.Host.At(pagePort)
		}
		all.Go(func() {
			if led, err := ask(ctx, transport, page+"/metrics", hasLeader); err == nil && led {
				have.Add(1)
			}
		})
	}
	all.Wait()
	return 2*int(have.Load()) > len(keepers) || len(keepers) == 0
}

// hasLeader finds on the page of a member of etcd whether its group has a leader.
func hasLeader(page io.Reader) (bool, error) {
	lines := bufio.NewScanner(page)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "etcd_server_has_leader "); ok {
			return value == "1", nil
		}
	}
	return false, lines.Err()
}
