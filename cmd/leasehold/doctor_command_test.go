package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/doctor"
	"github.com/leasehold-dev/leasehold/server/managerd"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// runDoctor runs leasehold doctor, and returns its exit status and report.
func runDoctor(t *testing.T, managers ...string) (int, doctor.Report) {
	t.Helper()
	var out, errs bytes.Buffer
	got := run(t.Context(), []string{"doctor", "--json", "--verbose", "--for", "1s", "--managers", strings.Join(managers, ",")}, &out, &errs)
	var d doctor.Report
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatalf("%v: %s%s", err, out.String(), errs.String())
	}
	return got, d
}

func has(d doctor.Report, v doctor.Verdict, check, text string) bool {
	for _, f := range d.Findings {
		if f.Verdict == v && f.Check == check && strings.Contains(f.Text, text) {
			return true
		}
	}
	return false
}

// The doctor finds a manager whose clock runs too fast.
func TestDoctorFindsRunawayClock(t *testing.T) {
	began := time.Now()
	clock := func(rate float64) func() *leaseholdv1.Clocks {
		return func() *leaseholdv1.Clocks {
			return &leaseholdv1.Clocks{Wall: timestamppb.Now(), Monotonic: int64(rate * float64(time.Since(began))), Drift: 1.2}
		}
	}
	good := startFake(t, inPresence(&fakeManager{clocks: clock(1)}))
	bad := startFake(t, inPresence(&fakeManager{clocks: clock(3)}))
	got, d := runDoctor(t, good.addr, bad.addr)
	if got != int(cli.StatusViolated) || !has(d, doctor.Wrong, "rates", "the clock of "+bad.addr) || !has(d, doctor.Wrong, "owners", "server-2") || !has(d, doctor.Wrong, "member", "does not respond") {
		t.Errorf("exit status %d: %+v", got, d)
	}
}

// With a real manager the doctor's report is complete. Once an owner has joined, it finds no problem.
func TestDoctorWithRealManager(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	m, err := manager.Start(manager.Config{
		Store: mem.New(), StoreName: "memory", Listener: listener, Logger: quiet, Build: "leasehold v1",
		Usage: (&managerd.KeptStore{Space: func() (used, most int64) { return 9, 10 }}).Usage,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	addr := listener.Addr().String()
	var out bytes.Buffer
	if got := run(t.Context(), []string{"namespace", "create", "presence", "--timeout", "1m", "--managers", addr}, &out, &out); got != 0 {
		t.Fatal(out.String())
	}
	if got, d := runDoctor(t, addr); got != 0 || !has(d, doctor.Hint, "space", "no owner has joined yet") {
		t.Errorf("exit status %d: %+v", got, d)
	}
	o, err := owner.Join(t.Context(), owner.Config{Managers: []string{addr}, Namespace: "presence", Name: "a", Addr: "127.0.0.1:1", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close(context.Background()) })
	var got int
	var d doctor.Report
	for range 60 { // the owner receives all keys in a second or two
		if got, d = runDoctor(t, addr); got == 0 {
			break
		}
	}
	if got != 0 || !has(d, doctor.Fine, "leader", addr+" leads in term 1") || !has(d, doctor.Fine, "rates", "") || !has(d, doctor.Fine, "walls", "") ||
		!has(d, doctor.Hint, "limits", "the store 9 B of 10 B") || !has(d, doctor.Fine, "limits", "owners connected 1 of 65,536") || !has(d, doctor.Hint, "owners", "without state transfer: a") {
		t.Errorf("exit status %d: %+v", got, d)
	}
}

// The doctor reports the certificates of this computer and of managers, and validates the access policy.
func TestDoctorWithTLS(t *testing.T) {
	f := newTLSGroup(t, 1)
	f.start(0)
	f.await("operator/alice", "status")
	ended, output := f.runAs("operator/alice", "doctor", "--for", "1s", "--access", f.of("access.yaml"))
	for _, want := range []string{
		"tls        this computer: the certificate of spiffe://example.org/operator/alice expires on ",
		"tls        " + f.addrs[0] + ": the certificate of spiffe://example.org/manager/m1 expires on ",
		"access     " + f.of("access.yaml") + ": the policy is valid",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("status %d, no %q in\n%s", ended, want, output)
		}
	}
	_, output = f.runAs("lookup/sessions", "doctor", "--for", "1s", "--access", f.of("ca.crt"))
	if !strings.Contains(output, "WRONG  access") {
		t.Errorf("an invalid policy was accepted:\n%s", output)
	}
}
