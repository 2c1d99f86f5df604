package httpauth

import (
	"maps"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

const (
	// Burst is the number of wrong tokens that one place may send at once.
	Burst = 5
	// Every is the minimum interval of further wrong tokens.
	Every = 2 * time.Second
	// maxPlaces bounds the number of tracked places. All further ones share one limit, which
	// bounds the total rate of wrong tokens.
	maxPlaces = 1024
)

// A Throttle limits the rate of wrong tokens per place, without affecting other places. Its methods
// are safe for concurrent use; it must not be copied.
type Throttle struct {
	mu     sync.Mutex
	failed map[string]time.Time // by place: the time at which its budget is full again
}

// Try calls check for a token from a place, and counts a failure. If the place is throttled, check is
// not called, and the error's kind is [leasehold.ErrLimit]. Checks run sequentially, and must not
// block.
func (t *Throttle) Try(place string, check func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	place = t.known(now, place)
	if t.failed[place].Sub(now) > (Burst-1)*Every {
		return leasehold.Errorf("log in", leasehold.ErrLimit, "", "too many tokens from this address were wrong: wait a few seconds")
	}
	err := check()
	if err == nil {
		return nil
	}
	paid := t.failed[place]
	if paid.Before(now) {
		paid = now
	}
	if t.failed == nil {
		t.failed = make(map[string]time.Time)
	}
	t.failed[place] = paid.Add(Every)
	return err
}

// known returns the place that counts for the limit, and removes places with a full budget.
func (t *Throttle) known(now time.Time, place string) string {
	if _, failed := t.failed[place]; failed || len(t.failed) < maxPlaces {
		return place
	}
	maps.DeleteFunc(t.failed, func(_ string, paid time.Time) bool { return paid.Before(now) })
	if len(t.failed) < maxPlaces {
		return place
	}
	return ""
}

// Place returns the source of a request: an IPv4 address, or the IPv6 prefix of one customer.
func Place(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	if ip := at.Addr().Unmap(); ip.Is4() {
		return ip.String()
	}
	network, err := at.Addr().WithZone("").Prefix(64)
	if err != nil {
		return ""
	}
	return network.String()
}
