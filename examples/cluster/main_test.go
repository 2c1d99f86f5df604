package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// TestMain runs main in the processes that the tests start.
func TestMain(m *testing.M) {
	if args := os.Getenv("CLUSTER_EXAMPLE"); args != "" {
		os.Args = append(os.Args[:1], strings.Fields(args)...)
		go proc.EndWithParent(os.Stdin)
		main()
		return
	}
	leak.Main(m)
}

// TestLength: the program is short.
func TestLength(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(program), "\n"); n > 52 {
		t.Errorf("%d lines, want 52 at most", n)
	}
}

// A fleet is three servers.
type fleet struct {
	t       *testing.T
	names   []string
	servers []*proc.Process
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t}
	if f.names, err = proc.FreePorts(3); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i, self := range f.names {
		p := &proc.Process{Name: self, Launch: proc.Launch{
			Program: program, Log: filepath.Join(dir, fmt.Sprintf("server-%d.log", i)),
			Env: []string{"CLUSTER_EXAMPLE=" + strings.Join(slices.Concat([]string{self}, f.names), " ")},
		}}
		f.servers = append(f.servers, p)
		t.Cleanup(func() {
			if p.Close(); t.Failed() {
				t.Logf("%s:\n%s", self, proc.Tail(p.Launch.Log))
			}
		})
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return f
}

func (f *fleet) start(i int) {
	f.t.Helper()
	if err := f.servers[i].Start(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) request(ctx context.Context, i int, method, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+f.names[i]+"/status/alice", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it is read
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}

// until repeats a request to a server until it succeeds.
func (f *fleet) until(i int, method, body string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	var text string
	err := proc.Until(ctx, func(ctx context.Context) (err error) {
		text, err = f.request(ctx, i, method, body)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return text
}

// expect reads the status through a server that has joined.
func (f *fleet) expect(i int, want, when string) {
	f.t.Helper()
	if text, err := f.request(f.t.Context(), i, http.MethodGet, ""); err != nil || text != want {
		f.t.Fatalf("%s: %q, %v; want %q", when, text, err, want)
	}
}

// TestCluster: three processes that are started one after the other are a cluster. Every server has every status, also while
// the servers are restarted one after the other.
func TestCluster(t *testing.T) {
	f := newFleet(t)
	for i := range 3 {
		f.start(i)
	}
	f.until(2, http.MethodPut, "at home")
	f.until(0, http.MethodGet, "")
	f.expect(0, "at home", "through another server")
	if testing.Short() {
		return
	}
	for i := range 3 {
		next := (i + 1) % 3
		f.until(next, http.MethodGet, "") // it has joined
		if err := f.servers[i].Terminate(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.expect(next, "at home", "without a server")
		f.start(i)
		f.until(i, http.MethodGet, "")
		f.expect(i, "at home", "through a restarted server")
	}
}

// TestKill: a killed server that restarts gets its keys back, and those of other servers are served meanwhile. After a crash of
// all servers, the cluster starts again without its statuses.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("it restarts processes")
	}
	f := newFleet(t)
	for i := range 3 {
		f.start(i)
	}
	for i := range 3 {
		f.until(i, http.MethodPut, "at home")
	}
	f.servers[0].Kill()
	f.start(0)
	for i := range 3 {
		f.until(i, http.MethodPut, "at work")
	}
	for i := range 3 {
		f.expect(i, "at work", "after a crash")
	}
	for i := range 3 {
		f.servers[i].Kill()
	}
	for i := range 3 {
		f.start(i)
	}
	for i := range 3 {
		f.until(i, http.MethodGet, "")
		f.expect(i, "", "after a crash of all servers")
	}
}
