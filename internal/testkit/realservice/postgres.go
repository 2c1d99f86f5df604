//go:build unix

package realservice

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// A PostgreSQL is a server with an empty database.
type PostgreSQL struct {
	*Server
	// DSN is the connection string for pgx and lib/pq: a Unix socket, the superuser, no
	// password.
	DSN string
}

// StartPostgreSQL starts a PostgreSQL that ends with the test. It takes one to two seconds.
func StartPostgreSQL(t testing.TB) *PostgreSQL {
	t.Helper()
	bin, ok := postgresBin()
	if !ok {
		skip(t, "PostgreSQL", "postgresql")
	}
	dir := directory(t)
	data := filepath.Join(dir, "data")
	run := command(t, dir)
	initdb := run(filepath.Join(bin, "initdb"), "--pgdata="+data, "--username=postgres",
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", initdb, err, out)
	}
	server := start(t, run(filepath.Join(bin, "postgres"), "-D", data, "-k", dir,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"),
		syscall.SIGQUIT, "ready to accept connections")
	if server == nil {
		t.Fatal("PostgreSQL does not start")
	}
	return &PostgreSQL{server, "host=" + dir + " user=postgres dbname=postgres sslmode=disable"}
}

// postgresBin returns the directory of the programs. Debian and others keep them
// off the path, one directory for each version.
func postgresBin() (string, bool) {
	places, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is right
	if initdb, err := exec.LookPath("initdb"); err == nil {
		places = append(places, filepath.Dir(initdb))
	}
	for i := len(places) - 1; i >= 0; i-- {
		_, noServer := os.Stat(filepath.Join(places[i], "postgres"))
		_, noInitdb := os.Stat(filepath.Join(places[i], "initdb"))
		if noServer == nil && noInitdb == nil {
			return places[i], true
		}
	}
	return "", false
}

// command returns a function that creates commands whose user owns a directory. As root, they run as another
// user: PostgreSQL refuses to run as root.
func command(t testing.TB, dir string) func(string, ...string) *exec.Cmd {
	t.Helper()
	attr := attributes()
	if os.Geteuid() == 0 {
		who, err := user.Lookup("postgres")
		if err != nil {
			who, err = user.Lookup("nobody")
		}
		if err != nil {
			t.Fatalf("PostgreSQL refuses to run as root, and there is no other user: %v", err)
		}
		uid, err := strconv.Atoi(who.Uid)
		if err != nil {
			t.Fatal(err)
		}
		gid, err := strconv.Atoi(who.Gid)
		if err != nil {
			t.Fatal(err)
		}
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	return func(program string, args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.SysProcAttr = dir, attr
		cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")} // no variables that configure it
		return cmd
	}
}
