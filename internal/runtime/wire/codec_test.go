package wire

import (
	"bytes"
	"testing"
	"time"
	"unsafe"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// bigReply returns a reply with a table of n ranges.
func bigReply(t testing.TB, n int) *protocol.LookupReply {
	t.Helper()
	ann := &table.Holder{Owner: "ann", Session: leasehold.Session{1}, Addr: "a:1", Weight: 1}
	var b keyrange.Builder[table.Entry]
	for i := range n {
		b.Append(leasehold.Key(i)<<40, table.Entry{Generation: leasehold.Generation(i + 1), Holder: ann})
	}
	snapshot, err := table.Restore(9, leasehold.Generation(n), b.Map())
	if err != nil {
		t.Fatal(err)
	}
	return &protocol.LookupReply{Namespace: "n", Leader: "m", Term: 3, Echo: 5, LSN: 9, Age: time.Second, Snapshot: snapshot}
}

func encoded(t testing.TB, r *protocol.LookupReply) *Frame {
	t.Helper()
	f, err := EncodeUpdate(r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// All streams that send a frame read the same bytes: 10,000 streams cost 10,000 small headers.
func TestFramesAreNotCopied(t *testing.T) {
	c, f := newCodec(maxRequestParts), encoded(t, bigReply(t, 1<<12))
	for _, sent := range []*Frame{f, f.Answer(1, 0), f.Answer(2, time.Hour)} {
		out, err := c.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		if unsafe.SliceData(out[0].ReadOnlyData()) != unsafe.SliceData(f.shared) {
			t.Error("the bytes have been copied")
		}
		if out.Len() != sent.Len() || sent.Len()-f.Len() > 32 {
			t.Errorf("%d bytes sent, frame %d, encoded frame %d", out.Len(), sent.Len(), f.Len())
		}
		out.Free() // must not free the bytes: other streams send them
		if unsafe.SliceData(out[0].ReadOnlyData()) != unsafe.SliceData(f.shared) {
			t.Error("the first stream has freed the bytes")
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = c.Marshal(f) }); n > 2 {
		t.Errorf("%v allocations to send a frame once more", n)
	}
}

// A frame and a message are received alike.
func TestFramesAndMessagesAreEqual(t *testing.T) {
	c, r := newCodec(maxRequestParts), bigReply(t, 100)
	frame, err := c.Marshal(encoded(t, r))
	if err != nil {
		t.Fatal(err)
	}
	message, err := c.Marshal(FromLookupReply(r))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(frame.Materialize(), message.Materialize()) {
		t.Error("the bytes of frame and message differ")
	}
}

// A reply is the update with another echo and age, including 0.
func TestAnswer(t *testing.T) {
	c, r := newCodec(maxRequestParts), bigReply(t, 3)
	f := encoded(t, r)
	for _, a := range []struct {
		echo protocol.Seq
		age  time.Duration
	}{{0, 0}, {7, 0}, {0, time.Minute}, {1<<64 - 1, 1<<63 - 1}} {
		out, err := c.Marshal(f.Answer(99, 99).Answer(a.echo, a.age))
		if err != nil {
			t.Fatal(err)
		}
		var got leaseholdv1.FollowResponse
		if err := c.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		want := *r
		want.Echo, want.Age = a.echo, a.age
		if !proto.Equal(&got, FromLookupReply(&want)) {
			t.Errorf("echo %d, age %v: received as %v", a.echo, a.age, &got)
		}
	}
}

func TestAnswerKnowsTheSchema(t *testing.T) {
	numberOf := func(m proto.Message, field protoreflect.Name) protowire.Number {
		return m.ProtoReflect().Descriptor().Fields().ByName(field).Number()
	}
	if n := numberOf((*leaseholdv1.FollowResponse)(nil), "update"); n != responseUpdate {
		t.Errorf("update is field %d", n)
	}
	if n := numberOf((*leaseholdv1.Update)(nil), "echo"); n != updateEcho {
		t.Errorf("echo is field %d", n)
	}
	if n := numberOf((*leaseholdv1.Update)(nil), "age"); n != updateAge {
		t.Errorf("age is field %d", n)
	}
}

// A name that is not UTF-8 is an error of EncodeUpdate, not a panic.
func TestEncodeUpdateRejectsInvalidName(t *testing.T) {
	_, err := EncodeUpdate(&protocol.LookupReply{Namespace: "n", Leader: "\xff"})
	if leasehold.KindOf(err) != leasehold.ErrInternal {
		t.Errorf("error %v", err)
	}
}

func TestCodecCountsParts(t *testing.T) {
	c := newCodec(3)
	changes := func(n int) []byte {
		c := &leaseholdv1.Changes{}
		for range n - 1 {
			c.Holders = append(c.Holders, &leaseholdv1.Holder{})
		}
		b, err := proto.Marshal(&leaseholdv1.FollowResponse{Kind: &leaseholdv1.FollowResponse_Update{Update: &leaseholdv1.Update{Changes: c}}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for n, want := range map[int]leasehold.Kind{2: leasehold.Other, 3: leasehold.ErrLimit, 1000: leasehold.ErrLimit} {
		err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(changes(n))}, &leaseholdv1.FollowResponse{})
		if leasehold.KindOf(err) != want || (err == nil) != (want == leasehold.Other) {
			t.Errorf("%d parts: %v, want %v", n, err, want)
		}
	}
	if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer{0xff}}, &leaseholdv1.HoldResponse{}); err == nil {
		t.Error("invalid bytes are decoded")
	}
	if err := c.Unmarshal(nil, "not a message"); err == nil {
		t.Error("a value that is not a message is decoded")
	}
}

// The limits of the codec and of gRPC are above those of the protocol.
func TestLimitsAreConsistent(t *testing.T) {
	most := protocol.DefaultLimits
	if 2*most.Changes >= maxResponseParts || protocol.MaxMoves >= maxRequestParts/2 {
		t.Error("the limit of the codec is below that of the protocol")
	}
	const largest = 8 + 8 + 9 // of a lease: start, limit and generation
	if size := most.Leases * largest; size > MaxRequest/2 {
		t.Errorf("the leases of a request may take %d bytes", size)
	}
	const report = 2*18 + 2*9 + 2 + 2*11 + 4 // of a move, at most
	if size := protocol.MaxCells*(3*8) + protocol.MaxHotKeys*(2*8) + protocol.MaxMoves*report; size > MaxRequest/2 {
		t.Errorf("the loads and moves of a request may take %d bytes", size)
	}
	if size := most.Ranges * (8 + 9 + 5 + 10); size > MaxResponse*2/3 {
		t.Errorf("the ranges of a table may take %d bytes", size)
	}
}

func BenchmarkEncodeUpdate(b *testing.B) {
	r := bigReply(b, 1<<16)
	for b.Loop() {
		if _, err := EncodeUpdate(r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkToLookupReply(b *testing.B) {
	u := FromLookupReply(bigReply(b, 1<<16)).GetUpdate()
	for b.Loop() {
		if _, err := ToLookupReply(u, protocol.DefaultLimits); err != nil {
			b.Fatal(err)
		}
	}
}
