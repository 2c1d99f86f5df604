package protocol_test

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// checkKinds checks a message as it is, and spoiled in one way at a time: the kind of the error is the expected one,
// nil if the message is still valid.
func checkKinds[M any](t *testing.T, good func() M, validate func(*M) error, spoiled map[string]struct {
	spoil func(*M)
	kind  leasehold.Kind
}) {
	t.Helper()
	m := good()
	if err := validate(&m); err != nil {
		t.Fatalf("a valid message is rejected: %v", err)
	}
	for name, s := range spoiled {
		m := good()
		s.spoil(&m)
		if err := validate(&m); leasehold.KindOf(err) != s.kind {
			t.Errorf("%s: %v, want kind %v", name, err, s.kind)
		}
	}
}

// Limits of names, with the longest valid ones.
var (
	longName     = storage.ManagerID(strings.Repeat("x", leasehold.MaxOwnerIDLen))
	longAddr     = strings.Repeat("x", leasehold.MaxAddrLen)
	longIdentity = strings.Repeat("x", protocol.MaxIdentityLen)
)

const (
	valid   = leasehold.Kind(0)
	invalid = leasehold.ErrInvalid
	limit   = leasehold.ErrLimit
)

func TestValidateMoves(t *testing.T) {
	type request = protocol.LeaseRequest
	ticket, empty := protocol.Ticket{1}, leasehold.Range{Start: 5, Limit: 5}
	good := func() request {
		return request{
			Namespace: "n", Holder: goodHolder(), Seq: 1,
			Moves: []protocol.MoveReport{
				{Ticket: ticket, Range: leasehold.Range{Limit: 10}, To: goodHolder(), State: protocol.MoveDone},
				{Ticket: ticket, Range: leasehold.Range{Start: 10}, To: goodHolder(), State: protocol.MoveDone},
			},
			Imports: []protocol.Import{{Ticket: ticket}},
			Loads:   &partition.Loads{},
		}
	}
	checkKinds(t, good, func(r *request) error { return r.Validate(limits) }, map[string]struct {
		spoil func(*request)
		kind  leasehold.Kind
	}{
		"the longest address":    {func(r *request) { r.Mover = longAddr }, valid},
		"too long an address":    {func(r *request) { r.Mover = longAddr + "x" }, invalid},
		"the longest process":    {func(r *request) { r.Holder.Process = longAddr }, valid},
		"most imports":           {func(r *request) { r.Imports = imports(protocol.MaxMoves) }, valid},
		"too many imports":       {func(r *request) { r.Imports = imports(protocol.MaxMoves + 1) }, limit},
		"most moves":             {func(r *request) { r.Moves = moves(protocol.MaxMoves) }, valid},
		"too many moves":         {func(r *request) { r.Moves = moves(protocol.MaxMoves + 1) }, limit},
		"no ticket":              {func(r *request) { r.Moves[1].Ticket = protocol.Ticket{} }, invalid},
		"an empty range":         {func(r *request) { r.Moves[1].Range = empty }, invalid},
		"no target":              {func(r *request) { r.Moves[1].To = nil }, invalid},
		"a bad target":           {func(r *request) { r.Moves[1].To.Addr = "" }, invalid},
		"no state":               {func(r *request) { r.Moves[1].State = 0 }, invalid},
		"the first state":        {func(r *request) { r.Moves[1].State = protocol.MoveCopying }, valid},
		"the last state":         {func(r *request) { r.Moves[1].State = protocol.MoveFailed }, valid},
		"an unknown state":       {func(r *request) { r.Moves[1].State = protocol.MoveFailed + 1 }, invalid},
		"both done, overlapping": {func(r *request) { r.Moves[1].Range.Start = 9 }, invalid},
		"one of them done":       {func(r *request) { r.Moves[1].Range.Start, r.Moves[1].State = 9, protocol.MoveFailed }, valid},
		"the other one done":     {func(r *request) { r.Moves[1].Range.Start, r.Moves[0].State = 9, protocol.MoveFailed }, valid},
		"import without ticket":  {func(r *request) { r.Imports[0].Ticket = protocol.Ticket{} }, invalid},
		"import of no range":     {func(r *request) { r.Imports[0].Range = empty }, invalid},
		"no loads":               {func(r *request) { r.Loads = nil }, valid},
		"most cells":             {func(r *request) { r.Loads.Cells = cells(protocol.MaxCells) }, valid},
		"too many cells":         {func(r *request) { r.Loads.Cells = cells(protocol.MaxCells + 1) }, limit},
		"most hot keys":          {func(r *request) { r.Loads.Hot = hot(protocol.MaxHotKeys) }, valid},
		"too many hot keys":      {func(r *request) { r.Loads.Hot = hot(protocol.MaxHotKeys + 1) }, limit},
		"negative load":          {func(r *request) { r.Loads.Hot = []partition.HotKey{{Rate: -1}} }, invalid},
	})
}

func imports(n int) (all []protocol.Import) {
	for range n {
		all = append(all, protocol.Import{Ticket: protocol.Ticket{1}})
	}
	return all
}

func moves(n int) (all []protocol.MoveReport) {
	for range n {
		all = append(all, protocol.MoveReport{Ticket: protocol.Ticket{1}, To: goodHolder(), State: protocol.MoveCopying})
	}
	return all
}

func cells(n int) (all []partition.Cell) {
	for i := range n {
		all = append(all, partition.Cell{Range: leasehold.Range{Start: leasehold.Key(i), Limit: leasehold.Key(i + 1)}})
	}
	return all
}

func hot(n int) (all []partition.HotKey) {
	for i := range n {
		all = append(all, partition.HotKey{Key: leasehold.Key(i)})
	}
	return all
}

func TestValidateOrders(t *testing.T) {
	type reply = protocol.LeaseReply
	ticket, empty := protocol.Ticket{1}, leasehold.Range{Start: 5, Limit: 5}
	departures := func(n int) (all []protocol.Departure) {
		for range n {
			all = append(all, protocol.Departure{Ticket: ticket, To: goodHolder()})
		}
		return all
	}
	arrivals := func(n int) (all []protocol.Arrival) {
		for range n {
			all = append(all, protocol.Arrival{Ticket: ticket, From: goodHolder()})
		}
		return all
	}
	good := func() reply {
		return reply{
			Namespace: "n", Session: leasehold.Session{1}, Leader: "m", Term: 2, Seq: 3, Timing: protocol.DefaultTiming(),
			Departures: departures(1), Arrivals: arrivals(1),
		}
	}
	checkKinds(t, good, func(r *reply) error { return r.Validate(limits) }, map[string]struct {
		spoil func(*reply)
		kind  leasehold.Kind
	}{
		"most offers": {func(r *reply) {
			r.Offers = []protocol.Offer{{Lease: lease(0, 1, 1)}, {Lease: lease(1, 2, 1)}, {Lease: lease(2, 3, 1)}}
		}, valid},
		"the longest leader":        {func(r *reply) { r.Leader = longName }, valid},
		"too long a leader":         {func(r *reply) { r.Leader += longName }, invalid},
		"most orders":               {func(r *reply) { r.Departures, r.Arrivals = departures(300), arrivals(212) }, valid},
		"too many orders":           {func(r *reply) { r.Departures, r.Arrivals = departures(300), arrivals(213) }, limit},
		"departure without ticket":  {func(r *reply) { r.Departures[0].Ticket = protocol.Ticket{} }, invalid},
		"departure of no range":     {func(r *reply) { r.Departures[0].Range = empty }, invalid},
		"departure without target":  {func(r *reply) { r.Departures[0].To = nil }, invalid},
		"departure to a bad target": {func(r *reply) { r.Departures[0].To.Addr = "" }, invalid},
		"the longest mover":         {func(r *reply) { r.Departures[0].Mover = longAddr }, valid},
		"too long a mover":          {func(r *reply) { r.Departures[0].Mover = longAddr + "x" }, invalid},
		"the longest identity":      {func(r *reply) { r.Departures[0].Identity, r.Arrivals[0].Identity = longIdentity, longIdentity }, valid},
		"too long a target's":       {func(r *reply) { r.Departures[0].Identity = longIdentity + "x" }, invalid},
		"too long a source's":       {func(r *reply) { r.Arrivals[0].Identity = longIdentity + "x" }, invalid},
		"arrival without ticket":    {func(r *reply) { r.Arrivals[0].Ticket = protocol.Ticket{} }, invalid},
		"arrival of no range":       {func(r *reply) { r.Arrivals[0].Range = empty }, invalid},
		"arrival without source":    {func(r *reply) { r.Arrivals[0].From = nil }, invalid},
		"arrival from a bad source": {func(r *reply) { r.Arrivals[0].From.Addr = "" }, invalid},
		"a bad incumbent":           {func(r *reply) { r.Incumbent = &table.Holder{} }, invalid},
		"a bad contender":           {func(r *reply) { r.Contender = &table.Holder{} }, invalid},
	})
}

func TestValidateNames(t *testing.T) {
	checkKinds(t, func() protocol.NotLeader { return protocol.NotLeader{} }, (*protocol.NotLeader).Validate, map[string]struct {
		spoil func(*protocol.NotLeader)
		kind  leasehold.Kind
	}{
		"the longest leader": {func(n *protocol.NotLeader) { n.Leader = longName }, valid},
		"too long a leader":  {func(n *protocol.NotLeader) { n.Leader += longName + "x" }, invalid},
		"the last term":      {func(n *protocol.NotLeader) { n.Term = protocol.MaxTerm }, valid},
		"a higher term":      {func(n *protocol.NotLeader) { n.Term = protocol.MaxTerm + 1 }, invalid},
	})
	type reply = protocol.LookupReply
	checkKinds(t, func() reply { return reply{Namespace: "n", Term: 1, LSN: 1, Changes: []table.Change{{LSN: 1}}} },
		func(r *reply) error { return r.Validate(limits) }, map[string]struct {
			spoil func(*reply)
			kind  leasehold.Kind
		}{
			"the longest leader":    {func(r *reply) { r.Leader = longName }, valid},
			"too long a leader":     {func(r *reply) { r.Leader += longName + "x" }, invalid},
			"a bad holder":          {func(r *reply) { r.Changes[0].Holder = &table.Holder{} }, invalid},
			"a snapshot and change": {func(r *reply) { r.Snapshot = tableAt(t, 1, 1) }, invalid},
			"a wrong end":           {func(r *reply) { r.LSN = 2 }, invalid},
		})
}

func TestValidateDeathNotice(t *testing.T) {
	type notice = protocol.DeathNotice
	good := func() notice {
		return notice{Namespace: "n", Owner: "o", Session: leasehold.Session{1}, Token: table.DeathToken{1}}
	}
	checkKinds(t, good, (*notice).Validate, map[string]struct {
		spoil func(*notice)
		kind  leasehold.Kind
	}{
		"no namespace": {func(n *notice) { n.Namespace = "" }, invalid},
		"no owner":     {func(n *notice) { n.Owner = "" }, invalid},
		"no session":   {func(n *notice) { n.Session = leasehold.Session{} }, invalid},
		"no token":     {func(n *notice) { n.Token = table.DeathToken{} }, invalid},
	})
}
