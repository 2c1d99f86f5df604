package access

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/time/rate"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
)

func openForBench(tb testing.TB) *Policy {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "access.yaml")
	text := "rules:\n  - identity: spiffe://d/owner/sessions/{name}\n    role: owner\n    namespaces: [sessions]\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	p, err := Open(Config{File: name, Logger: slog.New(slog.DiscardHandler), Revoked: func(*x509.Certificate) bool { return false }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// holdingSession is the session of an owner whose first message is authorized.
func holdingSession(tb testing.TB, p *Policy, name string) (*session, *leaseholdv1.HoldRequest) {
	tb.Helper()
	const hold = leaseholdv1.OwnerService_Hold_FullMethodName
	leaf := &x509.Certificate{SerialNumber: big.NewInt(1)}
	s := &session{
		policy: p, fullMethod: hold, method: methodOf(hold), rate: rate.NewLimiter(rate.Inf, 1), budget: &budget{messages: rate.NewLimiter(rate.Inf, 1), holds: rate.NewLimiter(rate.Inf, 1), bytes: rate.NewLimiter(rate.Inf, 1)},
		caller: Caller{ids: []secure.Identity{secure.Identity("spiffe://d/owner/sessions/" + name)}, chains: [][]*x509.Certificate{{leaf}}},
	}
	request := &leaseholdv1.HoldRequest{Namespace: "sessions", Holder: &leaseholdv1.Holder{Owner: name}}
	if err := s.receive(context.Background(), request); err != nil {
		tb.Fatal(err)
	}
	return s, request
}

// A received message with the same subject as the last one does not allocate, and neither
// does a sent one.
func TestMessagesDoNotAllocate(t *testing.T) {
	s, request := holdingSession(t, openForBench(t), "a")
	if n := testing.AllocsPerRun(1000, func() {
		if s.receive(context.Background(), request) != nil || s.recheck() != nil {
			t.Error("the message is denied")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMessageReceived(b *testing.B) {
	s, request := holdingSession(b, openForBench(b), "a")
	b.ReportAllocs()
	for b.Loop() {
		if err := s.receive(context.Background(), request); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMessageSent(b *testing.B) {
	s, _ := holdingSession(b, openForBench(b), "a")
	b.ReportAllocs()
	for b.Loop() {
		if err := s.recheck(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheckStreams checks 10,000 idle streams.
func BenchmarkCheckStreams(b *testing.B) {
	p := openForBench(b)
	for i := range 10_000 {
		s, _ := holdingSession(b, p, fmt.Sprintf("o%d", i))
		if err := p.register(s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		p.checkStreams(time.Now())
	}
}
