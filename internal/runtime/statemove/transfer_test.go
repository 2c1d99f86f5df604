package statemove

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// numbered returns n different records of about size bytes.
func numbered(n, size int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%d:%s", i, strings.Repeat("x", size))
	}
	return out
}

// send sends records and finishes.
func send(o *Outgoing, records []string) error {
	for _, r := range records {
		if err := o.Send([]byte(r)); err != nil {
			return err
		}
	}
	return o.Finish()
}

func TestTransfer(t *testing.T) {
	for name, want := range map[string][]string{
		"no records":           nil,
		"one":                  {"a"},
		"empty ones":           {"", "", "a", ""},
		"many small":           numbered(20_000, 3),
		"many empty":           make([]string, 100_000),
		"more than the window": numbered(100, 40_000),
		"longest record":       {"a", strings.Repeat("x", MaxRecord), "b"},
		"exactly one chunk":    {strings.Repeat("x", maxChunk-recordOverhead), "b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFakeNetwork()
				i := expect(r.serve(t), testTicket, nil)
				o := r.transfer(t)
				if err := send(o, want); err != nil {
					t.Fatal(err)
				}
				<-i.done
				if diff := cmp.Diff(want, i.has()); diff != "" || i.err != nil {
					t.Errorf("received with %v (-want +got):\n%.1000s", i.err, diff)
				}
				length := 0
				for _, record := range want {
					length += len(record)
				}
				if records, bytes := o.Progress(); records != uint64(len(want)) || bytes != uint64(length) {
					t.Errorf("counted %d records of %d bytes", records, bytes)
				}
			})
		})
	}
}

// Each record arrives once and in order, however often the connection breaks.
func TestTransferSurvivesBrokenConnections(t *testing.T) {
	for _, maxBytes := range []int{1 << 10, 70_000, 150_000, 1 << 20} {
		t.Run(fmt.Sprint(maxBytes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFakeNetwork()
				r.maxBytes = maxBytes
				want := numbered(1000, 400)
				if maxBytes < 10_000 {
					// Each connection must deliver at least one chunk.
					want = numbered(5, 100)
				}
				i := expect(r.serve(t), testTicket, nil)
				o := r.transfer(t)
				for n, record := range want {
					if err := o.Send([]byte(record)); err != nil {
						t.Fatal(err)
					}
					if n%100 == 3 {
						if err := o.Settle(); err != nil {
							t.Fatal(err)
						}
					}
				}
				if err := o.Finish(); err != nil {
					t.Fatal(err)
				}
				<-i.done
				if diff := cmp.Diff(want, i.has()); diff != "" || i.err != nil {
					t.Errorf("received with %v (-want +got):\n%.1000s", i.err, diff)
				}
				if maxBytes < 300_000 && maxBytes > 10_000 && r.count() < 3 {
					t.Errorf("%d connections, want several", r.count())
				}
			})
		})
	}
}

// After a reconnect the source resumes at the first chunk that the target has not received.
func TestTransferResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		gate := make(chan struct{})
		i := expect(r.serve(t), testTicket, gate)
		o := r.transfer(t)
		want := numbered(40, 60_000) // a chunk each, more than the window
		result := make(chan error, 1)
		go func() { result <- send(o, want) }()
		synctest.Wait()
		for range 5 {
			gate <- struct{}{}
		}
		synctest.Wait()
		r.cut(true)
		for range 5 {
			gate <- struct{}{} // the importer reads received chunks
		}
		time.Sleep(5 * time.Second)
		r.cut(false)
		close(gate)
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		<-i.done
		if diff := cmp.Diff(want, i.has()); diff != "" {
			t.Errorf("received (-want +got):\n%.1000s", diff)
		}
	})
}

// The window limits unacknowledged data, however slow the importer is.
func TestTransferHasAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		gate := make(chan struct{})
		i := expect(r.serve(t), testTicket, gate)
		o := r.transfer(t)
		result := make(chan error, 1)
		go func() { result <- send(o, numbered(10_000, 1000)) }()
		synctest.Wait()
		if _, sent := o.Progress(); sent < Window-2*maxChunk || sent > Window+2*maxChunk {
			t.Errorf("%d bytes were sent to a stalled importer", sent)
		}
		i.in.mu.Lock()
		if i.in.weight > Window {
			t.Errorf("the target holds %d bytes", i.in.weight)
		}
		i.in.mu.Unlock()
		close(gate)
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

// A transfer with progress, however little, has no timeout.
func TestSlowImporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		gate := make(chan struct{})
		i := expect(r.serve(t), testTicket, gate)
		o := r.transfer(t)
		want := numbered(10, 60_000) // a chunk each, and all fit into the window
		result := make(chan error, 1)
		go func() { result <- send(o, want) }()
		for range want {
			time.Sleep(testIdle - time.Second)
			gate <- struct{}{}
		}
		if err := <-result; err != nil {
			t.Error(err)
		}
		<-i.done
	})
}

// Settle waits until the importer has read all records.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		s := r.serve(t)
		o := r.transfer(t)
		settled := make(chan error, 1)
		go func() { settled <- o.Settle() }()
		synctest.Wait()
		select {
		case err := <-settled:
			t.Fatalf("settled with a target that has not accepted: %v", err)
		default:
		}
		gate := make(chan struct{})
		i := expect(s, testTicket, gate)
		if err := <-settled; err != nil {
			t.Fatal(err)
		}
		if err := o.Send([]byte("a")); err != nil {
			t.Fatal(err)
		}
		go func() { settled <- o.Settle() }()
		synctest.Wait()
		select {
		case err := <-settled:
			t.Fatalf("settled before the importer has read the record: %v", err)
		default:
		}
		close(gate)
		if err := <-settled; err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a"}, i.has()); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
	})
}

// A lost confirmation is sent again after a reconnect.
func TestConfirmationIsResent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		s := r.serve(t)
		imported := make(chan *Incoming, 1)
		s.Expect(testTicket, "", func(in *Incoming) {
			go func() {
				defer in.Release()
				for range in.Records() {
					continue
				}
				imported <- in
			}()
		})
		o := r.transfer(t)
		result := make(chan error, 1)
		go func() { result <- send(o, []string{"a"}) }()
		in := <-imported
		synctest.Wait()
		r.cut(true)
		in.Confirm()
		time.Sleep(3 * time.Second)
		select {
		case err := <-result:
			t.Fatalf("finished without a connection: %v", err)
		default:
		}
		r.cut(false)
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

func TestLongRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		i := expect(r.serve(t), testTicket, nil)
		o := r.transfer(t)
		wantError(t, o.Send(make([]byte, MaxRecord+1)), leasehold.ErrLimit, "4194305 bytes", "the limit is 4194304")
		if err := send(o, []string{"a"}); err != nil {
			t.Fatal(err)
		}
		<-i.done
		if diff := cmp.Diff([]string{"a"}, i.has()); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	})
}

// The caller may modify a record after Send has returned.
func TestSendCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		i := expect(r.serve(t), testTicket, nil)
		o := r.transfer(t)
		record := []byte("a")
		if err := o.Send(record); err != nil {
			t.Fatal(err)
		}
		copy(record, bytes.ToUpper(record))
		if err := send(o, []string{string(record)}); err != nil {
			t.Fatal(err)
		}
		<-i.done
		if diff := cmp.Diff([]string{"a", "A"}, i.has()); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	})
}

// Transfers above MaxTransfers wait for a slot.
func TestTransfersWaitForSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		s := r.serve(t)
		gate := make(chan struct{})
		var outs []*Outgoing
		var importers []*importer
		for n := range MaxTransfers + 1 {
			d := r.departure()
			d.Ticket = protocol.Ticket{1, byte(n)}
			importers = append(importers, expect(s, d.Ticket, gate))
			o := Open(context.Background(), d)
			t.Cleanup(o.Close)
			outs = append(outs, o)
			if err := o.Send([]byte("a")); err != nil {
				t.Fatal(err)
			}
			if n < MaxTransfers {
				go func() { _ = o.Finish() }()
				synctest.Wait()
			}
		}
		result := make(chan error, 1)
		go func() { result <- outs[MaxTransfers].Finish() }()
		time.Sleep(10 * time.Second)
		if len(importers[MaxTransfers].has()) > 0 {
			t.Error("more than MaxTransfers transfers are active")
		}
		close(gate)
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}
