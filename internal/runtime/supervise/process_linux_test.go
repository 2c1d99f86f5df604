package supervise_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/supervise"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
)

// roleVariable makes this test binary a supervised program.
const roleVariable = "SUPERVISE_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := roles()[role](); err != nil {
			fmt.Println("error:", err)
		}
		os.Exit(0)
	}
	leak.Main(m)
}

// roles are the supervised programs. Each prints a line per hash, or an error.
func roles() map[string]func() error {
	return map[string]func() error{
		"register":             func() error { return register("presence", "presence", "sessions") },
		"grandchild":           func() error { return another("register") },
		"exec":                 func() error { return execute("register") },
		"register, exec":       func() error { return firstThen(func() error { return execute("register") }) },
		"register, grandchild": func() error { return firstThen(func() error { return another("register") }) },
		"close":                func() error { return replaceSocket("") },
		"replace":              func() error { return replaceSocket(os.DevNull) },
		"leave":                leave,
		"wait, register":       func() error { _, _ = fmt.Scanln(); return register("presence") },
		"register many":        fill,
	}
}

// session returns a session of a namespace, the same in each process.
func session(ns string) *supervise.Session {
	return &supervise.Session{
		Namespace: leasehold.Namespace(ns), Owner: "server-1", ID: leasehold.Session{1}, Managers: []string{"127.0.0.1:7400"},
		Files: &supervise.Files{Roots: "/tls/ca.crt"},
	}
}

func register(namespaces ...string) error {
	c, err := supervise.Process()
	if err != nil || c == nil {
		return err
	}
	for _, ns := range namespaces {
		hash, err := c.Register(session(ns))
		if err != nil {
			return err
		}
		fmt.Println(hex.EncodeToString(hash[:]))
	}
	return nil
}

func leave() error {
	if err := register("presence", "sessions"); err != nil {
		return err
	}
	c, _ := supervise.Process()
	return c.Leave(session("presence"))
}

func fill() error {
	for i := range 300 {
		if err := register(fmt.Sprintf("n%d", i)); err != nil {
			return err
		}
	}
	return nil
}

func firstThen(next func() error) error {
	if err := register("presence"); err != nil {
		return err
	}
	return next()
}

// another runs this program in another role, in a child.
func another(role string) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = environment(role)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

func execute(role string) error {
	return syscall.Exec("/proc/self/exe", os.Args, environment(role))
}

func environment(role string) []string {
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, roleVariable) })
	return append(own, roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
}

// replaceSocket closes the inherited socket, and opens a file under its number.
func replaceSocket(file string) error {
	if err := syscall.Close(3); err != nil {
		return err
	}
	if file != "" {
		if fd, err := syscall.Open(file, 0, 0); err != nil || fd != 3 {
			return fmt.Errorf("descriptor %d: %w", fd, err)
		}
	}
	return register("presence")
}

// A child is a supervised process.
type child struct {
	server *supervise.Server
	cmd    *exec.Cmd
	out    bytes.Buffer
}

// start starts this test binary in a role under a supervisor.
func start(t *testing.T, role string) *child {
	t.Helper()
	server, err := supervise.NewServer(func() uint64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	const fd = 3 // the first of ExtraFiles
	variable, err := server.Environment(fd)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{server: server, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	c.cmd.Env = append(environment(role), variable)
	c.cmd.ExtraFiles, c.cmd.Stdout, c.cmd.Stderr = []*os.File{server.Socket()}, &c.out, &c.out
	return c
}

// run waits for the end of the process, and returns what it printed and the sessions left.
func (c *child) run(t *testing.T) (lines []string, deaths []supervise.Death) {
	t.Helper()
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.server.Serve(c.cmd.Process.Pid)
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, c.out.String())
	}
	return strings.Split(strings.TrimSpace(c.out.String()), "\n"), c.server.End()
}
