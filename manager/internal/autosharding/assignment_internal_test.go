package autosharding

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	pb "github.com/leasehold-dev/leasehold/proto/autosharding/v1"
)

func TestMain(m *testing.M) { leak.Main(m) }

// decode decodes messages as a client does: slices as "start-end endpoint", sorted, and the generation.
func decode(t failer, a *assignment) (slicesOf []string, generation int64, messages []int) {
	var (
		assigned  []*pb.SliceAssignment
		endpoints []string
	)
	for i, encoded := range a.messages {
		var m pb.WatchShardingAssignmentResponse
		if err := proto.Unmarshal(encoded, &m); err != nil || len(m.ProtoReflect().GetUnknown()) > 0 {
			t.Fatalf("message %d: %v, unknown fields: %x", i, err, m.ProtoReflect().GetUnknown())
		}
		messages = append(messages, len(encoded))
		assigned = append(assigned, m.GetChunk().GetSliceAssignments()...)
		for _, e := range m.GetChunk().GetEndpoints() {
			endpoints = append(endpoints, e.GetEndpoint())
		}
		if last := i == len(a.messages)-1; last != (m.GetMetadata() != nil) || last == (m.GetChunk() != nil) {
			t.Fatalf("message %d of %d is %v", i, len(a.messages), &m)
		}
		generation = m.GetMetadata().GetGeneration()
	}
	slices.SortFunc(assigned, func(a, b *pb.SliceAssignment) int {
		return cmp.Compare(string(a.GetSlice().GetStartKey()), string(b.GetSlice().GetStartKey()))
	})
	for _, s := range assigned {
		text := fmt.Sprintf("%s-%s", s.GetSlice().GetStartKey(), s.GetSlice().GetEndKey())
		if s.GetSlice().EndKey == nil {
			text += "end"
		}
		for _, e := range s.GetEndpoints() {
			text += " " + endpoints[e.GetEndpointIndex()]
		}
		slicesOf = append(slicesOf, text)
	}
	return slicesOf, generation, messages
}

type failer interface {
	Fatalf(format string, args ...any)
}

func holderAt(addr string) *table.Holder {
	h := &table.Holder{Owner: leasehold.OwnerID(addr), Addr: addr, Weight: 1}
	copy(h.Session[:], addr)
	return h
}

// The encoding, by example: the first slice starts at the empty key, the last has no end, vacant
// ranges have no endpoint, and adjacent ranges of one address are one slice.
func TestEncode(t *testing.T) {
	tab := table.New()
	grant := func(start, limit leasehold.Key, addr string) {
		next := tab.LSN() + 1
		c := table.Change{LSN: next, Kind: table.Granted, Range: leasehold.Range{Start: start, Limit: limit}, Generation: leasehold.Generation(next), Holder: holderAt(addr)}
		if err := tab.Apply(&c); err != nil {
			t.Fatal(err)
		}
	}
	grant(0x10, 0x20, "b:1")
	grant(0x20, 0x30, "b:1")
	grant(0x40, 0x50, "a:1")
	grant(0xfedcba9876543210, 0, "b:1")
	a, err := encode(tab)
	if err != nil {
		t.Fatal(err)
	}
	got, generation, _ := decode(t, a)
	want := []string{
		"-0000000000000010", "0000000000000010-0000000000000030 b:1", "0000000000000030-0000000000000040",
		"0000000000000040-0000000000000050 a:1", "0000000000000050-fedcba9876543210", "fedcba9876543210-end b:1",
	}
	if diff := gocmp.Diff(want, got); diff != "" || generation != 4 {
		t.Errorf("generation %d:\n%s", generation, diff)
	}
}

func TestEncodeRefusesLSNZero(t *testing.T) {
	if _, err := encode(table.New()); leasehold.KindOf(err) != leasehold.ErrInternal {
		t.Errorf("%v", err)
	}
}

// Every key is in the slice of its owner, for tables of any kind.
func TestEncodeAgainstTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab, newest := table.New(), leasehold.Generation(0)
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			start := leasehold.Key(rapid.Uint64Range(0, 15).Draw(t, "start")) << 60
			r, e := tab.At(start)
			c := table.Change{LSN: tab.LSN() + 1, Kind: table.Vacated, Range: leasehold.Range{Start: start, Limit: r.Limit}, Generation: e.Generation, Holder: e.Holder, Cause: leasehold.CauseReleased}
			if e.Vacant() {
				newest++
				c = table.Change{LSN: c.LSN, Kind: table.Granted, Range: c.Range, Generation: newest, Holder: holderAt(rapid.SampledFrom([]string{"a:1", "b:1", "c:1"}).Draw(t, "addr"))}
			}
			if err := tab.Apply(&c); err != nil {
				t.Fatalf("%v", err)
			}
		}
		a, err := encode(tab)
		if err != nil {
			t.Fatalf("%v", err)
		}
		got, _, _ := decode(t, a)
		var want []string
		last := ""
		for r, e := range tab.All() {
			addr := ""
			if !e.Vacant() {
				addr = " " + e.Holder.Addr
			}
			if len(want) > 0 && addr == last {
				continue
			}
			if len(want) > 0 {
				want[len(want)-1] = fmt.Sprintf(want[len(want)-1], fmt.Sprintf("%016x", uint64(r.Start)))
				want = append(want, fmt.Sprintf("%016x-%%s%s", uint64(r.Start), addr))
			} else {
				want = append(want, "-%s"+addr)
			}
			last = addr
		}
		want[len(want)-1] = fmt.Sprintf(want[len(want)-1], "end")
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("%s", diff)
		}
	})
}

// large is a table of 1,000 owners with 64 ranges each.
func large(t testing.TB) *table.Table {
	tab := table.New()
	holders := make([]*table.Holder, 1000)
	for i := range holders {
		holders[i] = holderAt(fmt.Sprintf("owner-%d.presence.svc.cluster.local:8443", i))
	}
	const ranges = 64_000
	const width = ^uint64(0)/ranges + 1
	for i := range uint64(ranges) {
		limit := leasehold.Key((i + 1) * width)
		if i == ranges-1 {
			limit = 0
		}
		c := table.Change{LSN: leasehold.LSN(i + 1), Kind: table.Granted, Range: leasehold.Range{Start: leasehold.Key(i * width), Limit: limit}, Generation: leasehold.Generation(i + 1), Holder: holders[i*7919%1000]}
		if err := tab.Apply(&c); err != nil {
			t.Fatal(err)
		}
	}
	return tab
}

// 1,000 owners with 64 ranges each are many chunks of at most 256 KiB.
func TestEncodeLarge(t *testing.T) {
	a, err := encode(large(t))
	if err != nil {
		t.Fatal(err)
	}
	got, generation, messages := decode(t, a)
	if len(got) != 64_000 || generation != 64_000 || len(messages) < 10 || slices.Max(messages) > maxChunk {
		t.Errorf("%d slices, generation %d, messages of %v bytes", len(got), generation, messages)
	}
}

func BenchmarkEncode(b *testing.B) {
	tab := large(b)
	for b.Loop() {
		if _, err := encode(tab); err != nil {
			b.Fatal(err)
		}
	}
}
