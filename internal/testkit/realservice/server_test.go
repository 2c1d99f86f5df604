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

// The log is kept, but not all of it, and a long line does no harm.
func TestKeepsTheEndOfTheLog(t *testing.T) {
	s := new(Server)
	heard := false
	s.listen(strings.NewReader(strings.Repeat("line\n", 100)+"now ready to go\n"+strings.Repeat("x", 1<<17)+"\nmore\n"), "ready", func() { heard = true })
	if !heard || len(s.last) != keptLines || s.last[keptLines-1] != "now ready to go" {
		t.Errorf("heard %t, kept %d lines", heard, len(s.last))
	}
}
