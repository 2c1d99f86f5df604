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
	// Burst is how many tokens from one place may be wrong at once.
	Burst = 5
	// Every is how often one may be after that.
	Every = 2 * time.Second
	// maxPlaces bounds from how many places tokens may have been wrong just now. All
	// others count as one place then: that bounds how many may be wrong in all.
	maxPlaces = 1024
)

// A Throttle has those wait who show tokens that are wrong. Who does so keeps nobody
// out elsewhere. Its methods may be called from many goroutines at once; it must not be
// copied.
type Throttle struct {
	mu     sync.Mutex
	failed map[string]time.Time // by place: failures are paid for up to then
}

// Try has a token checked that comes from a place, and notes whether it is wrong. If too
// many were, it is not checked at all, and the error's kind is [leasehold.ErrLimit]. Checks
// come one after the other, and must not wait.
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

// known returns the place as which one counts, and forgets those that have paid.
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

// Place is where a request comes from: an address, or what one customer has of IPv6.
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
