//go:build unix

package realservice

import (
	"errors"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A started server replies; a stopped one does not.
func TestRedisStartStop(t *testing.T) {
	r := StartRedis(t)
	conn, err := net.Dial("tcp", r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	r.Stop(t)
	if _, err := net.Dial("tcp", r.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after Stop: %v", err)
	}
	r.Stop(t) // again
}

func TestPostgreSQLLives(t *testing.T) {
	p := StartPostgreSQL(t)
	host, _, _ := strings.Cut(strings.TrimPrefix(p.DSN, "host="), " ")
	socket := host + "/.s.PGSQL.5432"
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	p.Stop(t)
	if _, err := net.Dial("unix", socket); err == nil {
		t.Error("the server replies after Stop")
	}
}

// start returns nil if a server exits before it is ready.
func TestServerExitsEarly(t *testing.T) {
	if s := start(t, exec.Command("sh", "-c", "echo no; exit 1"), syscall.SIGKILL, "ready"); s != nil {
		t.Error("the server is ready")
	}
}

// A tail keeps the end of the log, and finds a line that is written in two pieces.
func TestTail(t *testing.T) {
	log := tail{ready: []byte("ready"), found: make(chan struct{})}
	for _, piece := range []string{strings.Repeat("line\n", 10000), "now rea", "dy to go\n", strings.Repeat("x", 1<<17), "ready, again\n"} {
		if n, err := log.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	<-log.found
	if kept := log.String(); len(kept) != keptBytes || !strings.HasSuffix(kept, "xready, again\n") {
		t.Errorf("kept %d bytes", len(kept))
	}
}
