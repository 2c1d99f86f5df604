package admin

import (
	"fmt"
	"time"
)

// Outage returns the longest time without a leader in which no owner loses a lease, apart from the latency of the network:
// at its start the last renewal may be an interval old.
func (n Namespace) Outage() Seconds { return n.Lease - n.Renew }

// LeaseWarning returns what is wrong and what to choose, if a crash of the leader can interrupt owners that run: their
// leases end before another manager leads. It returns "" if the leases are long enough, or if the status does not have
// the managers' times.
func (s Status) LeaseWarning(n Namespace) (problem, advice string) {
	if s.Failover <= n.Outage() {
		return "", ""
	}
	problem = fmt.Sprintf("a crash of the leader can interrupt all servers of %s: a failover takes up to %v, and leases of %v, renewed every %v, outlive %v",
		n.Name, rounded(s.Failover), rounded(n.Lease), rounded(n.Renew), rounded(n.Outage()))
	advice = fmt.Sprintf("Choose --lease %v or more", s.shortestLease())
	if lease := time.Duration(n.Lease); lease >= s.shortestLease() {
		advice = fmt.Sprintf("Choose --renew %v or less", (lease - time.Duration(s.Failover)).Truncate(timeUnit))
	}
	if ttl := s.longestTTL(n.Outage()); ttl > 0 {
		advice += fmt.Sprintf(", or start all managers with --ttl %v or less", ttl)
	}
	return problem, advice + "."
}

func rounded(s Seconds) time.Duration { return time.Duration(s).Round(10 * time.Millisecond) }

// timeUnit is the unit of recommended times.
const timeUnit = 100 * time.Millisecond

// shortestLease is the shortest lease that outlives a failover, with the default interval of renewals, a quarter.
func (s Status) shortestLease() time.Duration {
	return (4*time.Duration(s.Failover)/3 + timeUnit - 1).Truncate(timeUnit)
}

// longestTTL is a TTL with a failover of at most this; 0 if there is none. With short TTLs, a failover without a disk
// takes up to 1.5 times the TTL.
func (s Status) longestTTL(failover Seconds) time.Duration {
	ratio := max(1.5, float64(s.Failover)/float64(s.TTL))
	return time.Duration(float64(failover) / ratio).Truncate(timeUnit)
}
