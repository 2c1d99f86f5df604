package mutant

const (
	fleaseAcceptor = "internal/machine/flease/acceptor.go"
	fleaseBid      = "internal/machine/flease/bid.go"
	fleaseClock    = "internal/machine/flease/clock.go"
	fleaseConfig   = "internal/machine/flease/config.go"
	fleaseHold     = "internal/machine/flease/hold.go"
	fleaseMachine  = "internal/machine/flease/machine.go"
	fleaseTwin     = "internal/machine/flease/twin.go"
)

// fleaseRecovery are bugs of how long a process waits that may have forgotten
// something.
var fleaseRecovery = []Mutant{
	{
		Name:  "flease-no-recovery",
		Why:   "a process that has forgotten what it accepted takes part at once",
		World: "--faults=crash=10,isolate=5",
		File:  fleaseConfig,
		Old:   "return c.Drift.Stretch(c.Lease), c.Lease + 2*c.Epsilon",
		New:   "return 0, 0",
	},
	{
		Name:  "flease-recovery-without-epsilon",
		Why:   "a process that has forgotten waits for the lease only, as if all wall clocks were equal",
		World: "--world=wall --faults=orphan=10,rate=3,step=3",
		Seeds: 4000,
		File:  fleaseConfig,
		Old:   "return c.Drift.Stretch(c.Lease), c.Lease + 2*c.Epsilon",
		New:   "return c.Drift.Stretch(c.Lease), c.Lease",
	},
	{
		Name:  "flease-recovery-without-drift",
		Why:   "a process that has forgotten waits for the lease on its own monotonic clock only, which may be fast",
		World: "--world=mono --faults=orphan=10,rate=3",
		Seeds: 4000,
		File:  fleaseConfig,
		Old:   "return c.Drift.Stretch(c.Lease), c.Lease + 2*c.Epsilon",
		New:   "return c.Lease, c.Lease + 2*c.Epsilon",
	},
	{
		Name:  "flease-recovery-by-mono-only",
		Why:   "a process that has forgotten does not wait for its wall clock",
		World: "--world=wall --faults=orphan=10,crash=5,rate=6",
		File:  fleaseConfig,
		Old:   "return c.Drift.Stretch(c.Lease), c.Lease + 2*c.Epsilon",
		New:   "return c.Drift.Stretch(c.Lease), 0",
	},
	{
		Name:  "flease-recovery-by-wall-only",
		Why:   "a process that has forgotten does not wait for its monotonic clock",
		World: "--world=mono --faults=orphan=10,rate=3",
		Seeds: 4000,
		File:  fleaseConfig,
		Old:   "return c.Drift.Stretch(c.Lease), c.Lease + 2*c.Epsilon",
		New:   "return 0, c.Lease + 2*c.Epsilon",
	},
}

// fleaseTimes are bugs of how long a lease lasts.
var fleaseTimes = []Mutant{
	{
		Name:  "flease-takeover-without-epsilon",
		Why:   "a lease is taken over when it is over on the successor's wall clock, which may be ahead",
		World: "--world=wall",
		File:  fleaseAcceptor,
		Old:   "return now.passed(Time{left, v.Until.Add(m.cfg.Epsilon)})",
		New:   "return now.passed(Time{left, v.Until})",
	},
	{
		Name:  "flease-takeover-by-mono-only",
		Why:   "a lease is taken over when an acceptor's monotonic clock says so, which may race",
		World: "--world=wall",
		File:  fleaseAcceptor,
		Old:   "return now.passed(Time{left, v.Until.Add(m.cfg.Epsilon)})",
		New:   "return now.passed(Time{left, now.Wall - 1})",
	},
	{
		Name:  "flease-takeover-by-wall-only",
		Why:   "a lease is taken over when the successor's wall clock says so, which may be wrong",
		World: "--world=mono --faults=isolate=10,slew=10,link-cut=5",
		Seeds: 6000,
		File:  fleaseAcceptor,
		Old:   "return now.passed(Time{left, v.Until.Add(m.cfg.Epsilon)})",
		New:   "return now.passed(Time{now.Mono, v.Until.Add(m.cfg.Epsilon)})",
	},
	{
		Name:  "flease-deadline-not-stretched",
		Why:   "an acceptor counts the lease on its own clock, which may be faster than the owner's",
		World: "--world=mono --faults=isolate=5,slew=8,rate=8,pause=3",
		Seeds: 3000,
		File:  fleaseAcceptor,
		Old:   "deadline := now.Mono.Add(m.cfg.Drift.Stretch(v.Left))",
		New:   "deadline := now.Mono.Add(v.Left)",
	},
	{
		Name:  "flease-copy-of-the-past-goes-on",
		Why:   "a process that was taken back to a snapshot takes part as if it knew what it has accepted since",
		World: "--world=both --faults=rewind=10,link-cut=8,isolate=8",
		Seeds: 4000,
		File:  fleaseClock,
		Old:   "	case by > 0:\n		m.forget(now)\n",
		New:   "",
	},
	{
		Name:  "flease-forgets-too-early",
		Why:   "an acceptor whose monotonic clock races forgets a lease that is in force by the wall clock",
		World: "--world=wall --faults=rate=10,link-cut=8,isolate=5",
		File:  fleaseAcceptor,
		Old:   "empty := c.value.Owner == 0 || c.value.Released || m.over(now, &c.value, c.deadline)",
		New:   "empty := true",
	},
	{
		Name:  "flease-believes-by-mono-only",
		Why:   "an owner believes in its lease although its wall clock says that it is over",
		World: "--world=wall",
		File:  fleaseHold,
		Old:   "until := Time{b.decided.Mono.Add(m.cfg.Lease), b.decided.Wall.Add(m.cfg.Lease)}",
		New:   "until := Time{b.decided.Mono.Add(m.cfg.Lease), b.decided.Wall.Add(100 * m.cfg.Lease)}",
	},
	{
		Name:  "flease-believes-by-wall-only",
		Why:   "an owner believes in its lease although its monotonic clock says that it is over",
		World: "--world=mono",
		File:  fleaseHold,
		Old:   "until := Time{b.decided.Mono.Add(m.cfg.Lease), b.decided.Wall.Add(m.cfg.Lease)}",
		New:   "until := Time{b.decided.Mono.Add(100 * m.cfg.Lease), b.decided.Wall.Add(m.cfg.Lease)}",
	},
	{
		Name:  "flease-counts-from-the-commit",
		Why:   "a lease counts from when the last acceptor's answer arrives, and so outlives what the acceptors wait for",
		World: "--world=both --faults=loss=20,pause=10,delay=10",
		Seeds: 1000,
		File:  fleaseHold,
		Old:   "until := Time{b.decided.Mono.Add(m.cfg.Lease), b.decided.Wall.Add(m.cfg.Lease)}",
		New:   "until := Time{now.Mono.Add(m.cfg.Lease), now.Wall.Add(m.cfg.Lease)}",
	},
	{
		Name:  "flease-expiry-not-checked-after-the-write",
		Why:   "a lease is announced that was over before the answers to its write came",
		World: "--faults=delay=10,pause=5",
		File:  fleaseHold,
		Old:   "	if now.reached(until) {\n		m.begin(now, b)\n		return\n	}\n",
		New:   "",
	},
	{
		Name:  "flease-renewal-revives",
		Why:   "a lease that was over for a while is renewed by an answer that comes late",
		World: "--faults=delay=10,pause=5,starve=5",
		File:  fleaseHold,
		Old:   "	if b.held && now.reached(b.lease.Until) {\n		m.lost(b)\n		return\n	}\n	if now.reached(until) {",
		New:   "	if now.reached(until) {",
	},
	{
		Name: "flease-drift-taken-for-a-step",
		Why:  "a process whose two clocks go at rates that differ takes its wall clock to have been set, time and again",
		File: fleaseClock,
		Old:  "if by.Abs() <= m.cfg.Epsilon+m.cfg.Drift.Stretch(passed)-passed {",
		New:  "if by.Abs() <= m.cfg.Epsilon {",
	},
}

// fleaseRounds are bugs of the register. That an older renewal must not replace a
// newer one is left to a test of the acceptor: in simulated worlds others ask so
// often that hardly a round sees two renewals, and one world in 60,000 noticed.
var fleaseRounds = []Mutant{
	{
		Name:  "flease-minority",
		Why:   "half of a group is taken for a majority of it",
		File:  fleaseAcceptor,
		Old:   "majority: len(members)/2 + 1}",
		New:   "majority: (len(members) + 1) / 2}",
		World: "--faults=isolate=5,link-cut=10",
	},
	{
		Name: "flease-one-accept-commits",
		Why:  "the first acceptor that accepts is taken for a majority",
		File: fleaseBid,
		Old:  "if bits.OnesCount64(b.accepts) >= b.cell.group.majority {",
		New:  "if b.accepts != 0 {",
	},
	{
		Name:  "flease-acceptor-counted-twice",
		Why:   "the same acceptor's answer, when it arrives twice, counts as two",
		World: "--faults=duplicate=10,loss=10,isolate=5,link-cut=5",
		File:  fleaseBid,
		Old:   "b.promises&^b.accepts&bit != 0:\n		b.accepts |= bit\n",
		New:   "b.promises&bit != 0:\n		b.accepts = b.accepts<<1 | 1\n",
	},
	{
		Name: "flease-value-not-reported",
		Why:  "an acceptor does not say what it has accepted",
		File: fleaseAcceptor,
		Old:  "	v := c.value\n	v.Left",
		New:  "	v := Value{}\n	v.Left",
	},
	{
		Name:  "flease-latest-round-only",
		Why:   "of what acceptors report, only what was written in the latest round counts, which may be older than a lease that was accepted after a crash",
		World: "--world=mono --faults=crash=10,isolate=10,slew=10,link-cut=5,crash-all=2 --processes=3 --resources=1",
		Seeds: 4000,
		File:  fleaseBid,
		Old:   "		b.seen = append(b.seen, sighting{*v, msg.Written, bit, v.Until})\n",
		New:   "		if len(b.seen) > 0 && !b.seen[0].at.Less(msg.Written) {\n			return nil\n		}\n		b.seen = append(b.seen[:0], sighting{*v, msg.Written, bit, v.Until})\n",
	},
	{
		Name:  "flease-write-without-a-promise",
		Why:   "an acceptor accepts a write in a round that it has not promised",
		Seeds: 4000,
		File:  fleaseAcceptor,
		Old:   "if msg.Ballot != c.promised || incarnation != c.promisee {",
		New:   "if false {",
	},
	{
		Name:  "flease-old-accept-counts",
		Why:   "an acceptor's answer to an earlier renewal counts for the present one, which it may never have heard of",
		World: "--world=mono --faults=duplicate=20,isolate=20,loss=20 --resources=1 --processes=3 --duration=60s",
		Seeds: 5000,
		File:  fleaseBid,
		Old:   "msg.Value.Serial == b.value.Serial && ",
		New:   "",
	},
	{
		Name:  "flease-stranger-believed",
		Why:   "of two incarnations of a process the higher one is believed, be it dead, and makes us forget the one that has its id now",
		World: "--faults=crash=10,duplicate=10,delay=5",
		Seeds: 4000,
		File:  fleaseMachine,
		Old:   "case p.incarnation != 0 && (e.Waiting || e.To != m.cfg.Incarnation || e.Echo <= p.since):",
		New:   "case p.incarnation != 0 && (e.Waiting || e.Incarnation < p.incarnation):",
	},
	{
		Name:  "flease-greeting-proves-nothing",
		Why:   "two processes that take each other for someone else greet each other for ever",
		Seeds: 3000,
		File:  fleaseMachine,
		Old:   "greeting.To, greeting.Echo, p.stranger = p.stranger, p.spoke, 0 //",
		New:   "greeting.To, greeting.Echo, p.stranger = p.stranger, 0, 0 //",
	},
}

// fleaseAsking are bugs of what those who ask do to those who have.
var fleaseAsking = []Mutant{
	{
		Name: "flease-asking-takes-away",
		Why:  "every question voids the round in which the holder renews, so that it loses the lease to those who only ask",
		File: fleaseAcceptor,
		Old:  "if msg.Kind == KindRead && m.inForce(now, c) && ",
		New:  "if false && ",
	},
	{
		Name:  "flease-told-by-few",
		Why:   "a caller is told of a lease that one member knows of",
		Seeds: 4000,
		File:  fleaseBid,
		Old:   "return bits.OnesCount64(s.by) >= b.cell.group.majority",
		New:   "return true",
	},
	{
		Name:  "flease-told-the-latest-end",
		Why:   "a caller is told that a lease lasts until an end that only one member knows of",
		Seeds: 4000,
		File:  fleaseBid,
		Old:   "Fence: s.Fence, Until: s.until})",
		New:   "Fence: s.Fence, Until: s.Until})",
	},
	{
		Name:  "flease-forgetful-never-told",
		Why:   "a holder goes on renewing in a round that a member has forgotten, which never hears of the lease",
		Seeds: 4000,
		File:  fleaseHold,
		Old:   "< b.cell.group.majority || b.rejects != 0 {\n			m.begin",
		New:   "< b.cell.group.majority {\n			m.begin",
	},
}

// fleaseWishes are bugs of what callers are promised.
var fleaseWishes = []Mutant{
	{
		Name: "flease-fence-not-raised",
		Why:  "a new tenure has the fence of the one before",
		File: fleaseHold,
		Old:  "fence := max(b.fence+1, clock)",
		New:  "fence := max(b.fence, 1)",
	},
	{
		Name:  "flease-fence-without-clock",
		Why:   "fences begin anew when all processes have forgotten",
		World: "--faults=crash=5,crash-all=5",
		File:  fleaseHold,
		Old:   "fence := max(b.fence+1, clock)",
		New:   "fence := max(b.fence+1, clock-clock)",
	},
	{
		Name:  "flease-fence-outruns-the-clock",
		Why:   "tenures that follow each other faster than one in a millisecond have fences that all processes' clocks have yet to reach when they have forgotten",
		World: "--world=wall --faults=sprint=10,crash-all=5",
		File:  fleaseHold,
		Old:   "ahead > e && ahead <= 2*e+1 {",
		New:   "ahead > e && ahead < e {",
	},
	{
		Name:  "flease-forgets-fences",
		Why:   "an acceptor that forgets a resource forgets its fence, too, and the wall clock was set back",
		World: "--world=mono --faults=step=10,slew=5,isolate=3,pause=3 --duration=60s",
		Seeds: 4000,
		File:  fleaseAcceptor,
		Old:   "	m.fence = max(m.fence, c.fence)\n",
		New:   "",
	},
	{
		Name: "flease-release-before-stopping",
		Why:  "a process that releases a lease goes on believing in it",
		File: fleaseHold,
		Old:  "b.wish, b.held = wishNone, false",
		New:  "b.wish = wishNone",
	},
	{
		Name:  "flease-telling-without-a-majority",
		Why:   "a caller is told of a lease that only one member knows of, and that nobody may ever have had",
		World: "--world=wall",
		Seeds: 4000,
		File:  fleaseHold,
		Old:   "		b.purpose, b.value = toTell, other.Value\n		m.write(now, b)\n",
		New:   "		b.purpose, b.value = toTell, other.Value\n		m.committed(now, b)\n",
	},
	{
		Name:  "flease-telling-in-doubt",
		Why:   "a caller is told of a lease that was released, by a member that has missed it",
		Seeds: 4000,
		File:  fleaseHold,
		Old:   "case others == 1 && m.latest(b, other):",
		New:   "case others == 1:",
	},
	{
		Name:  "flease-waits-for-the-dead",
		Why:   "a proposer that one member has rejected waits for another, which is dead, and never tries a later round",
		Seeds: 3000,
		File:  fleaseHold,
		Old:   "case b.rejects != 0 || b.phase == writing",
		New:   "case b.phase == writing",
	},
}

// fleaseTwins are bugs of how processes with one id are told apart.
var fleaseTwins = []Mutant{
	{
		Name:  "flease-late-packet-makes-a-twin",
		Why:   "what a dead process has answered before its successor started is taken for a sign that both are alive",
		World: "--faults=crash=10,delay=10,duplicate=5",
		Seeds: 4000,
		File:  fleaseTwin,
		Old:   "e.Echo > l.mark && e.Echo <= m.said",
		New:   "e.Echo <= m.said",
	},
	{
		Name:  "flease-former-life-makes-a-twin",
		Why:   "a greeting of its own former incarnation is taken for a twin's",
		World: "--world=wall --faults=step=5,rewind=10,rate=10,delay=5",
		Seeds: 4000,
		File:  fleaseTwin,
		Old:   "t.alive = t.alive || e.To == m.cfg.Incarnation && e.Echo <= m.said",
		New:   "t.alive = true",
	},
	{
		Name:  "flease-twin-not-told",
		Why:   "members that see two processes with one id tell neither of them",
		World: "--world=twins",
		File:  fleaseTwin,
		Old:   "	answer.GiveWay = true\n",
		New:   "",
	},
	{
		Name:  "flease-twin-goes-on",
		Why:   "a process that is told of its twin goes on renewing its leases",
		World: "--world=twins",
		File:  fleaseTwin,
		Old:   "	m.retired, m.ready = true, false\n",
		New:   "	m.retired, m.ready = false, m.ready\n",
	},
}
