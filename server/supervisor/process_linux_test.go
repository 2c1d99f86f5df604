package supervisor_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/supervise"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/supervisor"
)

// Variables that make this test binary a supervisor or its child.
const (
	roleVariable    = "SUPERVISOR_TEST_ROLE"
	managerVariable = "SUPERVISOR_TEST_MANAGER"
	timeoutVariable = "SUPERVISOR_TEST_TIMEOUT"
	printVariable   = "SUPERVISOR_TEST_PRINT" // print reports instead of sending them
)

const supervisorRole = "supervisor"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		leak.Main(m)
	case supervisorRole:
		os.Exit(supervise1())
	default:
		if err := roles()[role](); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
}

// supervise1 is "leasehold run", with the child's role as the argument.
func supervise1() int {
	timeout, err := time.ParseDuration(os.Getenv(timeoutVariable))
	if err != nil {
		panic(err)
	}
	if err := os.Setenv(roleVariable, os.Args[1]); err != nil {
		panic(err)
	}
	report := supervisor.Report
	if os.Getenv(printVariable) != "" {
		report = printReport
	}
	exit, err := supervisor.Run(context.Background(), supervisor.Config{
		Command: []string{os.Args[0]}, Report: report, NoticeTimeout: timeout, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	exit.Die()
	return exit.Status()
}

// sessionIn is the session that children register.
func sessionIn(ns leasehold.Namespace) *supervise.Session {
	return &supervise.Session{Namespace: ns, Owner: "server-1", ID: leasehold.Session{1}, Managers: []string{os.Getenv(managerVariable)}}
}

// register registers a session in each namespace, and prints the hashes.
func register(namespaces ...leasehold.Namespace) error {
	c, err := supervise.Process()
	if err != nil || c == nil {
		return err
	}
	for _, ns := range namespaces {
		hash, err := c.Register(sessionIn(ns))
		if err != nil {
			return err
		}
		fmt.Println(hex.EncodeToString(hash[:]))
	}
	return nil
}

// A fakeManager acknowledges death notices.
type fakeManager struct {
	leaseholdv1.UnimplementedOwnerServiceServer
	addr    string
	notices chan *leaseholdv1.ReportDeathRequest
}

func (f *fakeManager) ReportDeath(_ context.Context, r *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
	f.notices <- r
	return &leaseholdv1.ReportDeathResponse{Version: 1, Kind: &leaseholdv1.ReportDeathResponse_Outcome{Outcome: leaseholdv1.DeathOutcome_DEATH_OUTCOME_RECORDED}}, nil
}

// received returns the namespaces and hashes of all notices.
func (f *fakeManager) received(t *testing.T) (hashes []string) {
	t.Helper()
	for range len(f.notices) {
		r := <-f.notices
		if len(r.GetToken()) != 32 || r.GetOwner() != "server-1" || r.GetSession()[0] != 1 {
			t.Fatalf("notice %v", r)
		}
		h := table.DeathToken(r.GetToken()).Hash()
		hashes = append(hashes, r.GetNamespace()+" "+hex.EncodeToString(h[:]))
	}
	slices.Sort(hashes)
	return hashes
}

func startManager(t *testing.T) *fakeManager {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeManager{addr: listener.Addr().String(), notices: make(chan *leaseholdv1.ReportDeathRequest, 10)}
	server := grpc.NewServer()
	leaseholdv1.RegisterOwnerServiceServer(server, f)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with Stop
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return f
}

// A run is a supervisor with a child.
type run struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner // of the child
	stdin io.WriteCloser
	log   strings.Builder // of the supervisor, after its end
}

// command prepares a supervisor whose child has a role. A prefix starts it, if there is one.
func command(t *testing.T, manager, role string, prefix ...string) *run {
	t.Helper()
	args := append(prefix, os.Args[0], role)
	r := &run{cmd: exec.CommandContext(t.Context(), args[0], args[1:]...)}
	r.cmd.Env = append(os.Environ(), roleVariable+"="+supervisorRole, managerVariable+"="+manager, timeoutVariable+"=1h", "GORACE=atexit_sleep_ms=0")
	r.cmd.Stderr = &r.log
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.lines = bufio.NewScanner(stdout)
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *run) start(t *testing.T) *run {
	t.Helper()
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // it has usually ended
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	})
	return r
}

// line returns the next line that the child prints.
func (r *run) line(t *testing.T) string {
	t.Helper()
	if !r.lines.Scan() {
		t.Fatalf("the child has ended: %v, %s", r.lines.Err(), r.log.String())
	}
	return r.lines.Text()
}

// wait returns the lines that are left, and how the supervisor ended: "exit status 3", "signal: killed".
func (r *run) wait(t *testing.T) (lines []string, ended string) {
	t.Helper()
	for r.lines.Scan() {
		lines = append(lines, r.lines.Text())
	}
	_ = r.cmd.Wait() // the state has the error
	return lines, r.cmd.ProcessState.String()
}
