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

// A server answers when it has started, and is gone when it was stopped.
func TestRedisLives(t *testing.T) {
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
		t.Error("it answers after Stop")
	}
}

// A server that ends before it is ready is not waited for.
func TestEndsTooEarly(t *testing.T) {
	if s := start(t, exec.Command("sh", "-c", "echo no; exit 1"), syscall.SIGKILL, "ready"); s != nil {
		t.Error("it is taken for ready")
	}
}

// The end of the log is kept, and a line that arrives in two pieces is found.
func TestKeepsTheEndOfTheLog(t *testing.T) {
	log := tail{ready: []byte("ready"), heard: make(chan struct{})}
	for _, piece := range []string{strings.Repeat("line\n", 10000), "now rea", "dy to go\n", strings.Repeat("x", 1<<17), "ready, again\n"} {
		if n, err := log.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	<-log.heard
	if kept := log.String(); len(kept) != keptBytes || !strings.HasSuffix(kept, "xready, again\n") {
		t.Errorf("kept %d bytes", len(kept))
	}
}
