package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/server/fleasecontrol"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A terminal runs a command that a test can interrupt.
type terminal struct {
	interrupt context.CancelFunc
	ended     chan int // receives the exit status

	mu        sync.Mutex
	out, errs bytes.Buffer
	changed   chan struct{} // has an element after a write
}

// A stream is standard output or standard error of a terminal.
type stream struct {
	term *terminal
	to   *bytes.Buffer
}

func (s stream) Write(text []byte) (int, error) {
	s.term.mu.Lock()
	defer s.term.mu.Unlock()
	select {
	case s.term.changed <- struct{}{}:
	default:
	}
	return s.to.Write(text)
}

// inTerminal starts a command.
func inTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	term := &terminal{interrupt: cancel, ended: make(chan int, 1), changed: make(chan struct{}, 1)}
	go func() { term.ended <- run(ctx, args, stream{term, &term.out}, stream{term, &term.errs}) }()
	return term
}

func (term *terminal) text() (out, errs string) {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.out.String(), term.errs.String()
}

// await waits for a text on standard output.
func (term *terminal) await(t *testing.T, text string) {
	t.Helper()
	term.awaitIn(t, text, func() string { out, _ := term.text(); return out })
}

// awaitError waits for a text on standard error.
func (term *terminal) awaitError(t *testing.T, text string) {
	t.Helper()
	term.awaitIn(t, text, func() string { _, errs := term.text(); return errs })
}

func (term *terminal) awaitIn(t *testing.T, want string, output func() string) {
	t.Helper()
	timeout := time.After(time.Minute)
	for !strings.Contains(output(), want) {
		select {
		case code := <-term.ended:
			out, errs := term.text()
			t.Fatalf("ended with status %d without %q: %s%s", code, want, out, errs)
		case <-timeout:
			out, errs := term.text()
			t.Fatalf("output %q and %q, want %q", out, errs, want)
		case <-term.changed:
		}
	}
}

// end waits for the command to end with a status.
func (term *terminal) end(t *testing.T, want int) {
	t.Helper()
	select {
	case code := <-term.ended:
		if out, errs := term.text(); code != want {
			t.Fatalf("status %d, want %d: %s%s", code, want, out, errs)
		}
	case <-time.After(time.Minute):
		t.Fatal("the command has not ended within a minute")
	}
}

// ports returns free ports of the loopback interface.
func ports(t *testing.T, n int) []string {
	t.Helper()
	free, err := proc.FreePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	for i, addr := range free {
		_, free[i], _ = net.SplitHostPort(addr)
	}
	return free
}

// group runs three members, and returns them and their control addresses.
func group(t *testing.T) (members []*terminal, controls []string) {
	t.Helper()
	var list []string
	for i, p := range ports(t, 3) {
		controls = append(controls, "127.0.0.1:"+p)
		list = append(list, fmt.Sprintf("%d=127.0.0.1:%s", i+1, p))
	}
	for i := range controls {
		members = append(members, inTerminal(t, "flease", "run", "--id", fmt.Sprint(i+1), "--members", strings.Join(list, ","), "--lease", "6s", "--epsilon", "100ms"))
	}
	for _, m := range members {
		m.await(t, "ready\n")
	}
	return members, controls
}

// fence waits for the fence in the output of a command, and returns it.
func (term *terminal) fence(t *testing.T) string {
	t.Helper()
	term.await(t, "fence ")
	term.await(t, "\n")
	out, _ := term.text()
	return strings.Fields(out[strings.Index(out, "fence ")+len("fence "):])[0]
}

func TestFleaseCommands(t *testing.T) {
	members, at := group(t)
	acquire := func(member int, args ...string) *terminal {
		return inTerminal(t, append([]string{"flease", "acquire", "nightly", "--member", at[member]}, args...)...)
	}

	holder := acquire(0)
	first := holder.fence(t)
	once := acquire(1, "--try")
	once.end(t, 2)
	if _, errs := once.text(); !strings.Contains(errs, "member 1 holds it until") {
		t.Errorf("--try: %s", errs)
	}
	impatient := acquire(1, "--wait", "200ms")
	impatient.end(t, 2)
	if _, errs := impatient.text(); !strings.Contains(errs, "member 1 probably holds it: it was not acquired within 200ms") {
		t.Errorf("--wait 200ms: %s", errs)
	}
	// A member that proposes while another member's lease is decided does not receive that decision. It receives
	// the next renewal, unless a member proposes in between.
	deadline, again := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer again.Stop()
	for shown := ""; !strings.Contains(shown, "held by member 1 as last received, fence "+first); {
		select {
		case <-deadline:
			t.Fatalf("status of another member: %s", shown)
		case <-again.C:
		}
		seen := inTerminal(t, "flease", "status", "nightly", "--member", at[1])
		seen.end(t, 0)
		shown, _ = seen.text()
	}
	interrupted := acquire(1)
	interrupted.awaitError(t, "waiting for nightly: member 1 probably holds it\n")
	interrupted.interrupt()
	interrupted.end(t, 130)
	var s fleasecontrol.Status
	status := inTerminal(t, "flease", "status", "--member", at[0], "--json")
	status.end(t, 0)
	out, _ := status.text()
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	if !s.Ready || s.Self != 1 || s.Held != 1 || len(s.Members) != 2 || len(s.Leases) != 1 || cli.Decimal(s.Leases[0].Fence) != first || s.Leases[0].Resource != "nightly" {
		t.Errorf("status %+v", s)
	}

	next := acquire(1, "--", "sh", "-c", "echo $FLEASE_RESOURCE has $FLEASE_FENCE; exit 7")
	holder.interrupt() // releases the lease
	holder.end(t, 0)
	next.end(t, 7)
	if fence, out := next.fence(t), next.out.String(); fence <= first || !strings.Contains(out, "nightly has "+fence+"\n") {
		t.Errorf("fence %s after %s: %s", fence, first, out)
	}

	killed := acquire(2, "--", "sleep", "600")
	killed.fence(t)
	members[2].interrupt()
	members[2].end(t, 0)
	killed.end(t, 2)
	if _, errs := killed.text(); !strings.Contains(errs, "the lease is over: lease \"nightly\": the node was closed") {
		t.Errorf("acquire after the end of its member: %s", errs)
	}
	stopped := acquire(1, "--json", "--", "sleep", "600")
	stopped.await(t, `"state":"held","resource":"nightly","member":2,"fence":"`)
	stopped.interrupt() // forwarded to the command
	stopped.end(t, 2)
	for _, m := range members[:2] {
		m.interrupt()
	}
}

// A second process with the id of a member is rejected at any address. The output of a member states that no
// other member responds, or that it has no control address.
func TestFleaseDuplicateMember(t *testing.T) {
	members, at := group(t)
	var list []string
	for i, addr := range at {
		list = append(list, fmt.Sprintf("%d=%s", i+1, addr))
	}
	free := ports(t, 1)[0]
	duplicate := []string{"flease", "run", "--id", "1", "--members", strings.Join(list, ","), "--lease", "6s", "--epsilon", "100ms"}
	same := inTerminal(t, duplicate...)
	same.end(t, 2)
	if _, errs := same.text(); !strings.Contains(errs, "because member 1 runs already") {
		t.Errorf("duplicate at the same address: %s", errs)
	}
	elsewhere := "127.0.0.1:" + free
	other := inTerminal(t, append(duplicate, "--listen", elsewhere, "--control", elsewhere)...)
	other.end(t, 2)
	if out, errs := other.text(); !strings.Contains(errs, "another process runs as this member") || strings.Contains(out, "ready") {
		t.Errorf("duplicate at another address: %s%s", out, errs)
	}
	if out, errs := members[0].text(); !strings.Contains(errs, "two processes run as the same member") {
		t.Errorf("output of the first member: %s%s", out, errs)
	}
	isolated := inTerminal(t, "flease", "run", "--tcp", "--id", "1", "--members", "1="+elsewhere+",2=127.0.0.1:1,3=127.0.0.1:2", "--lease", "100ms", "--epsilon", "10ms")
	isolated.await(t, "ready, but only 0 of 2 other members respond")
	isolated.await(t, "none: add --control")
	status := inTerminal(t, "flease", "status", "--member", elsewhere)
	status.end(t, 2)
	if _, errs := status.text(); !strings.Contains(errs, "A member with --tcp has a control address only with --control") {
		t.Errorf("status without a control address: %s", errs)
	}
	for _, m := range append(members, isolated) {
		m.interrupt()
		m.end(t, 0)
	}
}

func TestFleaseBadFlags(t *testing.T) {
	empty := t.TempDir() + "/key"
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := "1=127.0.0.1:7001"
	for _, test := range []struct {
		args string
		want string
	}{
		{"run", "--members is missing"},
		{"run --id 1", "--members is missing"},
		{"run --members " + one, "--id is missing"},
		{"run --id 2 --members " + one, "--id 2: --members has no such member among its 1"},
		{"run --id 1 --members " + one + " --lease 0", "--lease 0s, --epsilon 500ms, --drift 1.2: want more than 0"},
		{"run --id 1 --members " + one + " --epsilon 0", "want more than 0"},
		{"run --id 1 --members " + one + " --drift 0", "want more than 0"},
		{"run --id 1 --members " + one + ",1=127.0.0.1:7002 --control 127.0.0.1:0", "member 1 twice"},
		{"run --id 1 --members " + one + ",2=127.0.0.1:7001 --control 127.0.0.1:0", "address of both member 1 and member 2"},
		{"run --id 1 --members 127.0.0.1:7001", "want a positive id and an address"},
		{"run --id 1 --members 1=7001", "want host:port"},
		{"run --id 1 --members " + one + " --control 0.0.0.0:7001", "want a loopback address"},
		{"run --id 1 --members " + one + " --key-file " + empty, "is empty"},
		{"run --id 1 --members " + one + " --key-file /nowhere", "no such file"},
		{"run --id 1 --members " + one + " --lease 1s --epsilon 2s", "not less than the lease"},
		{"run --id 1 --members 1=10.0.0.1:7001 --control 127.0.0.1:0", "there is no key"},
		{"run 1", "takes only flags"},
		{"acquire nightly --bogus", `unknown flag --bogus; "leasehold flease acquire --help" lists the flags`},
		{"acquire nightly --wiat 1s", "the closest is --wait"},
		{"status a b", "accepts at most 1 arg"},
		{"nosuch", `no subcommand "nosuch"`},
		{"acquire", "want one resource name"},
		{"acquire a b", "want one resource name"},
		{`acquire ""`, "resource name of 0 bytes: want 1 to 255"},
		{"acquire " + strings.Repeat("a", 256), "resource name of 256 bytes"},
		{"acquire a --member 10.0.0.1:7001", "want a loopback address"},
		{"acquire a --member 127.0.0.1:1", "no member responds"},
		{"status --member 127.0.0.1:1", "no member responds"},
	} {
		args := strings.Fields(test.args)
		if args[len(args)-1] == `""` {
			args[len(args)-1] = ""
		}
		term := inTerminal(t, append([]string{"flease"}, args...)...)
		term.end(t, 2)
		if _, errs := term.text(); !strings.Contains(errs, test.want) {
			t.Errorf("%s: %s, want %s", test.args, errs, test.want)
		}
	}
}

// TestGuideFlease runs the commands of the user guide's section on Flease, on other ports.
func TestGuideFlease(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(guide), "\n## Flease\n")
	if !found {
		t.Fatal("docs/guide.md has no section Flease")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	free := ports(t, 3)
	section = strings.NewReplacer("7001", free[0], "7002", free[1], "7003", free[2]).Replace(section)
	var lines [][]string
	for line := range strings.Lines(section) {
		if command, found := strings.CutPrefix(line, "    go run ./cmd/leasehold "); found && strings.HasPrefix(command, "flease ") {
			command, _, _ = strings.Cut(command, "#")
			lines = append(lines, strings.Fields(command))
		}
	}
	if len(lines) != 7 {
		t.Fatalf("docs/guide.md has %d lines to run, want 7", len(lines))
	}
	var members []*terminal
	for _, line := range lines[:3] {
		members = append(members, inTerminal(t, line...))
	}
	for _, m := range members {
		m.await(t, "control")
	}
	once := inTerminal(t, lines[3]...)
	first := once.fence(t)
	once.end(t, 0)
	holder := inTerminal(t, lines[4]...)
	second := holder.fence(t)
	if second <= first {
		t.Errorf("fence %s after %s", second, first)
	}
	waiter := inTerminal(t, lines[5]...)
	waiter.awaitError(t, "waiting for nightly: member 2 probably holds it")
	status := inTerminal(t, lines[6]...)
	status.end(t, 0)
	if out, _ := status.text(); !strings.Contains(out, "held by member 2 as last received, fence "+second) {
		t.Errorf("status: %s", out)
	}
	members[1].interrupt()
	holder.end(t, 2)
	if third := waiter.fence(t); third <= second {
		t.Errorf("fence %s after %s", third, second)
	}
	for _, term := range append(members, waiter) {
		term.interrupt()
	}
	waiter.end(t, 0)
}
