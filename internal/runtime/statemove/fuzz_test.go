package statemove

import (
	"bytes"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// FuzzOpening decodes arbitrary metadata: the result is an opening or InvalidArgument, and only the
// right ticket finds a transfer.
func FuzzOpening(f *testing.F) {
	good, err := proto.Marshal(&leaseholdv1.TransferOpening{Version: wire.Version, Namespace: "presence", Ticket: testTicket[:], Session: testSession[:]})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good))
	f.Add("")
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := openingOf(metadata.NewIncomingContext(t.Context(), metadata.Pairs(openingKey, text)))
		if err != nil {
			if status.Code(err) != codes.InvalidArgument {
				t.Fatalf("code %v: %v", status.Code(err), err)
			}
			return
		}
		s := &Server{ServerConfig: ServerConfig{Namespace: "presence", Session: testSession}, expected: map[protocol.Ticket]*Incoming{testTicket: {}}}
		found, _ := s.find(o.GetTicket())
		if (found != nil) != bytes.Equal(o.GetTicket(), testTicket[:]) {
			t.Fatalf("ticket %x found: %t", o.GetTicket(), found != nil)
		}
	})
}

// FuzzTransfer processes arbitrary messages of a source: unread data stays within the window, records contain all
// data of their chunks, and each chunk is processed once.
func FuzzTransfer(f *testing.F) {
	for _, messages := range [][]*leaseholdv1.TransferRequest{
		{chunk(1, "abc", 1, 2), chunk(2, "", 0, 0), end(3)},
		{chunk(1, "abc", 1, 1<<32-1)},
		{chunk(2, "a", 1)},
		{end(1), chunk(2, "a", 1)},
		{{}},
	} {
		var b bytes.Buffer
		for _, m := range messages {
			if _, err := protodelim.MarshalTo(&b, m); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &Server{ServerConfig: ServerConfig{Idle: time.Hour}, changed: make(notifier), expected: make(map[protocol.Ticket]*Incoming)}
		s.ctx = t.Context()
		in := s.Expect(testTicket, "", func(*Incoming) {})
		in.begun, in.idle = true, time.AfterFunc(time.Hour, func() {})
		defer in.Close(leasehold.Errorf("", leasehold.ErrClosed, "", ""))
		var bytesIn, recordsIn int
		for from := bytes.NewReader(b); ; {
			m := &leaseholdv1.TransferRequest{}
			if protodelim.UnmarshalFrom(from, m) != nil {
				return
			}
			before := in.next
			if err := in.put(0, m); err != nil {
				if leasehold.KindOf(err) == leasehold.Other {
					t.Fatalf("error without a kind: %v", err)
				}
				return // the transfer is refused
			}
			if in.next != before+1 {
				t.Fatalf("next is %[2]d after message %[1]d", before, in.next)
			}
			bytesIn += len(m.GetChunk().GetData())
			recordsIn += len(m.GetChunk().GetSizes())
			if in.tally.bytes != uint64(bytesIn) || in.tally.records != uint64(recordsIn) {
				t.Fatalf("%d records of %d bytes sent, %d of %d received", recordsIn, bytesIn, in.tally.records, in.tally.bytes)
			}
			if unread := in.weight; unread > Window && len(in.queue) > 1 {
				t.Fatalf("%d bytes in %d chunks are unread, the window is %d", unread, len(in.queue), Window)
			}
		}
	})
}
