package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/leasehold-dev/leasehold/internal/chaos/actor"
	"github.com/leasehold-dev/leasehold/internal/chaos/vitals"
)

// Vitals asks all processes what they take, and those around them. Callers say what they know
// of themselves by other means.
func (c *Cluster) Vitals(ctx context.Context, into *vitals.Log, callers func(name string) vitals.Sample) {
	transport := c.transport()
	for _, m := range c.All() {
		pid := m.Pid()
		outside, err := vitals.Outside(pid)
		if err != nil {
			continue // it is dead, and is started again
		}
		var inside vitals.Sample
		switch m.Role {
		case Manager:
			inside, err = ask(ctx, transport, m.Host.At(pagePort)+"/metrics", vitals.ReadPage)
		case Store:
			inside, err = ask(ctx, transport, m.Addr+"/metrics", vitals.ReadPage)
		case Owner:
			inside, err = ask(ctx, transport, m.Addr+actor.VitalsPath, vitals.Read)
		case Caller:
			inside = callers(m.Name)
		}
		if err == nil { // one that has no time just now says it another time
			into.Add(m.Name, pid, outside, inside)
		}
	}
}

// transport asks from the host of an operator.
func (c *Cluster) transport() *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true, // whoever is asked is not to be changed by it
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return c.Operator.Dial(ctx, network, addr)
		},
	}
}

// ask gets a page.
func ask[T any](ctx context.Context, via http.RoundTripper, url string, read func(io.Reader) (T, error)) (found T, err error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+url, nil)
	if err != nil {
		return found, err
	}
	answer, err := via.RoundTrip(request)
	if err != nil {
		return found, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if answer.StatusCode != http.StatusOK {
		return found, fmt.Errorf("%s: %s", url, answer.Status)
	}
	return read(answer.Body)
}
