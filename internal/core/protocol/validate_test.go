package protocol_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// limits are small, so that a test can reach them.
var limits = protocol.Limits{Leases: 3, Changes: 2, Ranges: 2}

// A refusal turns a valid message into an invalid one, with the expected error.
type refusal[M any] struct {
	name  string
	spoil func(*M)
	kind  leasehold.Kind
	want  string
}

func checkRefusals[M any](t *testing.T, good func() M, validate func(*M) error, refusals []refusal[M]) {
	t.Helper()
	m := good()
	if err := validate(&m); err != nil {
		t.Fatalf("a valid message is rejected: %v", err)
	}
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			m := good()
			r.spoil(&m)
			err := validate(&m)
			if err == nil {
				t.Fatal("the message is accepted")
			}
			if diff := cmp.Diff(r.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if !errors.Is(err, r.kind) {
				t.Errorf("the error's kind is %v, want %v", leasehold.KindOf(err), r.kind)
			}
		})
	}
}

func goodHolder() *table.Holder {
	return &table.Holder{Owner: "o", Session: leasehold.Session{1}, Addr: "a:1", Weight: 1, Process: "p"}
}

func lease(start, limit leasehold.Key, g leasehold.Generation) leasehold.Lease {
	return leasehold.Lease{Range: leasehold.Range{Start: start, Limit: limit}, Generation: g}
}

func TestValidateHolder(t *testing.T) {
	const invalid = leasehold.ErrInvalid
	long := strings.Repeat("x", leasehold.MaxAddrLen+1)
	checkRefusals(t, func() table.Holder { return *goodHolder() }, protocol.ValidateHolder, []refusal[table.Holder]{
		{"no name", func(h *table.Holder) { h.Owner = "" }, invalid, `owner id: want 1 to 128 bytes, have 0`},
		{"control character in the name", func(h *table.Holder) { h.Owner = "o\n" }, invalid, `owner id "o\n": character U+000A at position 1 is not printable`},
		{"no session", func(h *table.Holder) { h.Session = leasehold.Session{} }, invalid, `holder "o": has no session`},
		{"no address", func(h *table.Holder) { h.Addr = "" }, invalid, `holder "o": address has 0 bytes, want 1 to 256`},
		{"a long address", func(h *table.Holder) { h.Addr = long }, invalid, `holder "o": address has 257 bytes, want 1 to 256`},
		{"no weight", func(h *table.Holder) { h.Weight = 0 }, invalid, `holder "o": weight is 0, want more than 0 and at most 1000`},
		{"negative weight", func(h *table.Holder) { h.Weight = -1 }, invalid, `holder "o": weight is -1, want more than 0 and at most 1000`},
		{"weight above the limit", func(h *table.Holder) { h.Weight = 1000.5 }, invalid, `holder "o": weight is 1000.5, want more than 0 and at most 1000`},
		{"infinite weight", func(h *table.Holder) { h.Weight = math.Inf(1) }, invalid, `holder "o": weight is +Inf, want more than 0 and at most 1000`},
		{"weight NaN", func(h *table.Holder) { h.Weight = math.NaN() }, invalid, `holder "o": weight is NaN, want more than 0 and at most 1000`},
		{"a long process identity", func(h *table.Holder) { h.Process = long }, invalid, `holder "o": process identity has 257 bytes, want at most 256`},
	})
}

func TestValidateHolderAcceptsBounds(t *testing.T) {
	h := goodHolder()
	h.Process = ""
	h.Weight = protocol.MaxWeight
	h.Addr = strings.Repeat("x", leasehold.MaxAddrLen)
	if err := protocol.ValidateHolder(h); err != nil {
		t.Error(err)
	}
}

func TestValidateLeaseRequest(t *testing.T) {
	type request = protocol.LeaseRequest
	good := func() request {
		return request{
			Namespace: "n", Holder: goodHolder(), Seq: 5, Term: 2, Heard: 4, Applied: 3, Gone: leasehold.Session{2},
			Leases: []leasehold.Lease{lease(0, 10, 1), lease(10, 20, 2), lease(30, 0, 1)},
		}
	}
	const invalid = leasehold.ErrInvalid
	checkRefusals(t, good, func(r *request) error { return r.Validate(limits) }, []refusal[request]{
		{"no holder", func(r *request) { r.Holder = nil }, invalid, `lease request "n": has no holder`},
		{"a bad holder", func(r *request) { r.Holder.Addr = "" }, invalid, `holder "o": address has 0 bytes, want 1 to 256`},
		{"no namespace", func(r *request) { r.Namespace = "" }, invalid, `namespace: want 1 to 64 characters, have 0 bytes`},
		{"a bad namespace", func(r *request) { r.Namespace = "N" }, invalid, `namespace "N": 'N' at position 0: use a-z and 0-9, and after the first also . _ -`},
		{"no sequence number", func(r *request) { r.Seq = 0 }, invalid, `lease request "o": sequence numbers start at 1`},
		{"applied after the newest received", func(r *request) { r.Applied = 5 }, invalid, `lease request "o": acknowledges message 5 as applied, after message 4 as received`},
		{"term above the limit", func(r *request) { r.Term = math.MaxUint64 }, invalid, `lease request "o": term 18446744073709551615 exceeds the limit`},
		{"ack without a term", func(r *request) { r.Term = 0 }, invalid, `lease request "o": acknowledges message 4 without a term`},
		{"leaving with leases", func(r *request) { r.Leaving = true }, invalid, `lease request "o": is leaving, and has 3 leases`},
		{"negative load", func(r *request) { r.Load = -1 }, invalid, `lease request "o": load is -1, want 0 to 1e+15`},
		{"load NaN", func(r *request) { r.Load = math.NaN() }, invalid, `lease request "o": load is NaN, want 0 to 1e+15`},
		{"infinite load", func(r *request) { r.Load = math.Inf(1) }, invalid, `lease request "o": load is +Inf, want 0 to 1e+15`},
		{"too many leases", func(r *request) { r.Leases = append(r.Leases, lease(40, 50, 1)) }, leasehold.ErrLimit, `lease request "o": 4 leases, at most 3 are allowed`},
		{"own session gone", func(r *request) { r.Gone = r.Holder.Session }, invalid, `lease request "o": reports its own session as gone`},
		{"a lease of an empty range", func(r *request) { r.Leases[1] = lease(10, 10, 2) }, invalid, `lease request "000000000000000a-000000000000000a@2": is not a valid lease`},
		{"a lease without a generation", func(r *request) { r.Leases[1].Generation = 0 }, invalid, `lease request "000000000000000a-0000000000000014@0": is not a valid lease`},
		{"leases that overlap", func(r *request) { r.Leases[1].Range.Start = 9 }, invalid, `lease request "0000000000000009-0000000000000014@2": leases overlap or are not sorted: 0000000000000000-000000000000000a comes before`},
		{"leases out of order", func(r *request) { r.Leases[0], r.Leases[1] = r.Leases[1], r.Leases[0] }, invalid, `lease request "0000000000000000-000000000000000a@1": leases overlap or are not sorted: 000000000000000a-0000000000000014 comes before`},
		{"a lease after the end of the key space", func(r *request) { r.Leases[1].Range.Limit = 0 }, invalid, `lease request "000000000000001e-end@1": leases overlap or are not sorted: 000000000000000a-end comes before`},
	})
}

func TestValidateLeaseRequestAccepts(t *testing.T) {
	for name, r := range map[string]protocol.LeaseRequest{
		"first request":     {Namespace: "n", Holder: goodHolder(), Seq: 1},
		"last request":      {Namespace: "n", Holder: goodHolder(), Seq: math.MaxUint64, Term: protocol.MaxTerm, Heard: 1, Leaving: true},
		"all keys":          {Namespace: "n", Holder: goodHolder(), Seq: 1, Leases: []leasehold.Lease{{Generation: 1}}},
		"highest acks":      {Namespace: "n", Holder: goodHolder(), Seq: 1, Term: 1, Heard: math.MaxUint64, Applied: math.MaxUint64},
		"term without acks": {Namespace: "n", Holder: goodHolder(), Seq: 9, Term: 7},
	} {
		t.Run(name, func(t *testing.T) {
			if err := r.Validate(limits); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestValidateLeaseReply(t *testing.T) {
	type reply = protocol.LeaseReply
	good := func() reply {
		return reply{
			Namespace: "n", Session: leasehold.Session{1}, Leader: "m", Term: 2, Seq: 3, Echo: 4, Timing: protocol.DefaultTiming(),
			Offers: []protocol.Offer{{Lease: lease(0, 10, 1)}, {Lease: lease(10, 0, 2), Fresh: true}},
		}
	}
	const invalid = leasehold.ErrInvalid
	checkRefusals(t, good, func(r *reply) error { return r.Validate(limits) }, []refusal[reply]{
		{"no namespace", func(r *reply) { r.Namespace = "" }, invalid, `namespace: want 1 to 64 characters, have 0 bytes`},
		{"no session", func(r *reply) { r.Session = leasehold.Session{} }, invalid, `lease reply "m": has no session`},
		{"no term", func(r *reply) { r.Term = 0 }, invalid, `lease reply "m": term 0 and sequence number 3 must be positive`},
		{"no sequence number", func(r *reply) { r.Seq = 0 }, invalid, `lease reply "m": term 2 and sequence number 0 must be positive`},
		{"too many offers", func(r *reply) {
			r.Offers = []protocol.Offer{{Lease: lease(0, 1, 1)}, {Lease: lease(1, 2, 1)}, {Lease: lease(2, 3, 1)}, {Lease: lease(3, 4, 1)}}
		}, leasehold.ErrLimit, `lease reply "m": 4 offers, at most 3 are allowed`},
		{"bad timing", func(r *reply) { r.Timing.Drift = 0 }, invalid, `timing "drift": is 0, want 1 to 10`},
		{"an offer of an empty range", func(r *reply) { r.Offers[0].Range.Start = 10 }, invalid, `lease reply "000000000000000a-000000000000000a@1": is not a valid lease`},
		{"an offer without a generation", func(r *reply) { r.Offers[1].Generation = 0 }, invalid, `lease reply "000000000000000a-end@0": is not a valid lease`},
		{"offers that overlap", func(r *reply) { r.Offers[0].Range.Limit = 11 }, invalid, `lease reply "000000000000000a-end@2": leases overlap or are not sorted: 0000000000000000-000000000000000b comes before`},
	})
}

// A reply with a term above the limit is rejected too.
func TestValidateLeaseReplyBoundsTerm(t *testing.T) {
	r := protocol.LeaseReply{Namespace: "n", Session: leasehold.Session{1}, Term: protocol.MaxTerm, Seq: 1, Timing: protocol.DefaultTiming()}
	if err := r.Validate(limits); err != nil {
		t.Errorf("the last term: %v", err)
	}
	r.Term++
	if err := r.Validate(limits); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("the term after the last: %v", err)
	}
}

func TestValidateLookupRequest(t *testing.T) {
	type request = protocol.LookupRequest
	good := func() request { return request{Namespace: "n", Lookup: math.MaxUint64, Seq: 1, LSN: math.MaxUint64} }
	checkRefusals(t, good, (*request).Validate, []refusal[request]{
		{"no namespace", func(r *request) { r.Namespace = "" }, leasehold.ErrInvalid, `namespace: want 1 to 64 characters, have 0 bytes`},
		{"no sequence number", func(r *request) { r.Seq = 0 }, leasehold.ErrInvalid, `lookup request "n": sequence numbers start at 1`},
	})
}

// tableAt returns a table at lsn with this number of ranges, all vacant.
func tableAt(t *testing.T, lsn leasehold.LSN, ranges int) *table.Table {
	t.Helper()
	var b keyrange.Builder[table.Entry]
	for i := range ranges {
		b.Append(leasehold.Key(i), table.Entry{Lost: leasehold.LSN(i % 2)})
	}
	restored, err := table.Restore(lsn, 0, b.Map())
	if err != nil {
		t.Fatal(err)
	}
	return restored
}

func TestValidateLookupReply(t *testing.T) {
	type reply = protocol.LookupReply
	good := func() reply {
		return reply{Namespace: "n", Leader: "m", Term: 1, LSN: 7, From: 5, Changes: []table.Change{{LSN: 6}, {LSN: 7}}}
	}
	const invalid = leasehold.ErrInvalid
	checkRefusals(t, good, func(r *reply) error { return r.Validate(limits) }, []refusal[reply]{
		{"no namespace", func(r *reply) { r.Namespace = "" }, invalid, `namespace: want 1 to 64 characters, have 0 bytes`},
		{"no term", func(r *reply) { r.Term = 0 }, invalid, `lookup reply "m": term 0 is not valid`},
		{"term above the limit", func(r *reply) { r.Term = protocol.MaxTerm + 1 }, invalid, `lookup reply "m": term 281474976710657 is not valid`},
		{"negative age", func(r *reply) { r.Age = -1 }, invalid, `lookup reply "m": age -1ns is negative`},
		{"too many changes", func(r *reply) { r.Changes, r.LSN = append(r.Changes, table.Change{LSN: 8}), 8 }, leasehold.ErrLimit, `lookup reply "m": 3 changes, at most 2 are allowed`},
		{"both a snapshot and changes", func(r *reply) { r.Snapshot = tableAt(t, 7, 1) }, invalid, `lookup reply "m": has both a snapshot and changes`},
		{"a snapshot at another LSN", func(r *reply) { r.Changes, r.Snapshot = nil, tableAt(t, 6, 1) }, invalid, `lookup reply "m": snapshot is at lsn 6, reply at 7`},
		{"both a crossing and changes", func(r *reply) { r.Crossing = &table.Crossing{} }, invalid, `lookup reply "m": has both a crossing and a snapshot or changes`},
		{"a crossing beyond the reply's LSN", func(r *reply) { r.Changes, r.Crossing = nil, &table.Crossing{Gap: table.Gap{Base: 8}} }, invalid, `lookup reply "m": crosses a gap to lsn 8, reply at 7`},
		{
			"crossing above the limit", func(r *reply) { r.Changes, r.Crossing = nil, &table.Crossing{Unproven: make([]leasehold.Key, 3)} },
			leasehold.ErrLimit, `lookup reply "m": 3 unproven ranges, at most 2 are allowed`,
		},
		{"snapshot above the limit", func(r *reply) { r.Changes, r.Snapshot = nil, tableAt(t, 7, 3) }, leasehold.ErrLimit, `lookup reply "m": 3 ranges, at most 2 are allowed`},
		{"too few changes", func(r *reply) { r.LSN = 8 }, invalid, `lookup reply "m": 2 changes from lsn 5 do not end at 8`},
		{"changes with a gap", func(r *reply) { r.Changes[0].LSN = 5 }, invalid, `lookup reply "m": change 0 has lsn 5, want 6`},
		{"changes in the wrong order", func(r *reply) { r.Changes[0], r.Changes[1] = r.Changes[1], r.Changes[0] }, invalid, `lookup reply "m": change 0 has lsn 7, want 6`},
	})
}

func TestValidateLookupReplyAccepts(t *testing.T) {
	for name, r := range map[string]protocol.LookupReply{
		"no changes":   {Namespace: "n", Term: 1, LSN: 7, From: 3},
		"empty table":  {Namespace: "n", Term: 1},
		"a snapshot":   {Namespace: "n", Term: protocol.MaxTerm, LSN: 7, From: 9, Snapshot: tableAt(t, 7, 2)},
		"oldest state": {Namespace: "n", Term: 1, Age: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			if err := r.Validate(limits); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestValidateTiming(t *testing.T) {
	type timing = protocol.Timing
	const invalid = leasehold.ErrInvalid
	checkRefusals(t, protocol.DefaultTiming, func(t *timing) error { return t.Validate() }, []refusal[timing]{
		{"too short a lease", func(t *timing) { t.Lease = protocol.MinLease - 1 }, invalid, `timing "9.999999ms": a lease lasts 10ms to 24h0m0s`},
		{"too long a lease", func(t *timing) { t.Lease = protocol.MaxLease + 1 }, invalid, `timing "24h0m0.000000001s": a lease lasts 10ms to 24h0m0s`},
		{"negative lease", func(t *timing) { t.Lease = math.MinInt64 }, invalid, `timing "-2562047h47m16.854775808s": a lease lasts 10ms to 24h0m0s`},
		{"no renewals", func(t *timing) { t.Renew = 0 }, invalid, `timing "0s": renewals come at least twice in a lease of 10s, and not more often than every 1ms`},
		{"too few renewals", func(t *timing) { t.Renew = 5*time.Second + 1 }, invalid, `timing "5.000000001s": renewals come at least twice in a lease of 10s, and not more often than every 1ms`},
		{"drift below 1", func(t *timing) { t.Drift = 0.99 }, invalid, `timing "drift": is 0.99, want 1 to 10`},
		{"drift above the limit", func(t *timing) { t.Drift = 10.5 }, invalid, `timing "drift": is 10.5, want 1 to 10`},
		{"no drift", func(t *timing) { t.Drift = 0 }, invalid, `timing "drift": is 0, want 1 to 10`},
		{"drift NaN", func(t *timing) { t.Drift = mono.Drift(math.NaN()) }, invalid, `timing "drift": is NaN, want 1 to 10`},
	})
}

func TestTimingPresets(t *testing.T) {
	for _, c := range []struct {
		name   string
		timing protocol.Timing
		want   protocol.Timing
		hold   time.Duration
	}{
		{"default", protocol.DefaultTiming(), protocol.Timing{Lease: 10 * time.Second, Renew: 2500 * time.Millisecond, Drift: 1.2}, 12 * time.Second},
		{"paper", protocol.PaperTiming(), protocol.Timing{Lease: time.Minute, Renew: 15 * time.Second, Drift: 65.0 / 60}, 65 * time.Second},
		{"exact clocks", protocol.Timing{Lease: time.Second, Renew: time.Second / 2, Drift: 1}, protocol.Timing{Lease: time.Second, Renew: time.Second / 2, Drift: 1}, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.timing.Validate(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, c.timing); diff != "" {
				t.Errorf("timing (-want +got):\n%s", diff)
			}
			if got := c.timing.Hold(); got < c.hold || got > c.hold+time.Nanosecond {
				t.Errorf("Hold is %v, want %v, rounded up", got, c.hold)
			}
		})
	}
}

// TestLimitsAreInclusive: each limit itself is valid.
func TestLimitsAreInclusive(t *testing.T) {
	for _, timing := range []protocol.Timing{
		{Lease: protocol.MinLease, Renew: protocol.MinRenew, Drift: 1},
		{Lease: protocol.MaxLease, Renew: protocol.MaxLease / 2, Drift: protocol.MaxDrift},
	} {
		if err := timing.Validate(); err != nil {
			t.Errorf("%+v: %v", timing, err)
		}
	}
	request := protocol.LeaseRequest{Namespace: "n", Holder: goodHolder(), Seq: 1, Load: partition.MaxRate}
	if err := request.Validate(limits); err != nil {
		t.Error(err)
	}
	crossing := func(silent, unproven int) *protocol.LookupReply {
		return &protocol.LookupReply{Namespace: "n", Term: 1, LSN: 7, Crossing: &table.Crossing{
			Gap: table.Gap{Base: 7}, Silent: make([]leasehold.Session, silent), Unproven: make([]leasehold.Key, unproven),
		}}
	}
	if err := crossing(1, 1).Validate(limits); err != nil {
		t.Error(err)
	}
	if err := crossing(2, 1).Validate(limits); !errors.Is(err, leasehold.ErrLimit) {
		t.Errorf("a crossing with three entries: %v", err)
	}
	both := crossing(0, 0)
	both.Snapshot = tableAt(t, 7, 1)
	if err := both.Validate(limits); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("a crossing and a snapshot: %v", err)
	}
	one := &protocol.LookupReply{Namespace: "n", Term: 1, LSN: 1, Crossing: &table.Crossing{}, Changes: []table.Change{{LSN: 1}}}
	if err := one.Validate(limits); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("a crossing and one change: %v", err)
	}
	leaving := protocol.LeaseRequest{Namespace: "n", Holder: goodHolder(), Seq: 1, Leaving: true, Leases: []leasehold.Lease{{Generation: 1}}}
	if err := leaving.Validate(limits); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("leaving with one lease: %v", err)
	}
	held := &protocol.LookupReply{Namespace: "n", Term: 1, LSN: 1, Changes: []table.Change{{LSN: 1, Holder: goodHolder()}}}
	if err := held.Validate(limits); err != nil {
		t.Errorf("a change with a holder: %v", err)
	}
	held.LSN, held.Changes = 2, append(held.Changes, table.Change{LSN: 3})
	if err := held.Validate(limits); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("a change with a holder before one with a wrong LSN: %v", err)
	}
	heard := protocol.LeaseRequest{Namespace: "n", Holder: goodHolder(), Seq: 1, Heard: 1}
	if err := heard.Validate(limits); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("the first message is acknowledged without a term: %v", err)
	}
}
