package supervise_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/runtime/supervise"
)

// shown are the hashes of the tokens, as the programs print them.
func shown(deaths []supervise.Death) (hashes []string) {
	for _, d := range deaths {
		h := d.Token.Hash()
		hashes = append(hashes, hex.EncodeToString(h[:]))
	}
	return hashes
}

// A process registers owners in two namespaces. A repetition returns the same hash.
func TestRegister(t *testing.T) {
	lines, deaths := start(t, "register").run(t)
	hashes := shown(deaths)
	if len(hashes) != 2 || len(lines) != 3 || lines[0] != hashes[0] || lines[1] != hashes[0] || lines[2] != hashes[1] || hashes[0] == hashes[1] {
		t.Fatalf("printed %q, and the hashes are %q", lines, hashes)
	}
	if d := deaths[1]; d.Namespace != "sessions" || d.Owner != "server-1" || d.ID[0] != 1 || d.Managers[0] != "127.0.0.1:7400" || d.Files.Config().Roots != "/tls/ca.crt" {
		t.Errorf("registered %+v", d)
	}
}

func TestLeave(t *testing.T) {
	if _, deaths := start(t, "leave").run(t); len(deaths) != 1 || deaths[0].Namespace != "sessions" {
		t.Errorf("after leaving presence, %+v are left", deaths)
	}
}

// A program that is executed before the first session inherits the socket and the process ID.
func TestExec(t *testing.T) {
	if lines, deaths := start(t, "exec").run(t); len(deaths) != 2 || len(lines) != 3 {
		t.Errorf("printed %q, and %+v are registered", lines, deaths)
	}
}

// Errors leave the process unsupervised. It ends with status 0.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		role, want string
		registered int
	}{
		{"grandchild", `is not the direct child`, 0},
		{"register, exec", "descriptor 3 is not the socket of a supervisor", 1},
		{"register, grandchild", "descriptor 3 is not the socket of a supervisor", 1},
		{"close", "descriptor 3 is not the socket of a supervisor", 0},
		{"replace", "descriptor 3 is not the socket of a supervisor", 0},
	} {
		t.Run(test.role, func(t *testing.T) {
			lines, deaths := start(t, test.role).run(t)
			if last := lines[len(lines)-1]; !strings.Contains(last, test.want) || len(deaths) != test.registered {
				t.Errorf("printed %q, want %q; %d sessions are registered, want %d", last, test.want, len(deaths), test.registered)
			}
		})
	}
}

// At the limit, a session replaces the oldest.
func TestManySessions(t *testing.T) {
	lines, deaths := start(t, "register many").run(t)
	if hashes := shown(deaths); len(hashes) != 256 || len(lines) != 300 || !slices.Equal(hashes, lines[300-256:]) {
		t.Errorf("%d sessions are left of %d: %q", len(deaths), len(lines), lines[len(lines)-1])
	}
}

// A process whose supervisor ends first continues.
func TestSupervisorEndsFirst(t *testing.T) {
	c := start(t, "wait, register")
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.server.Serve(c.cmd.Process.Pid)
	c.server.Close()
	if _, err := stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil || !strings.Contains(c.out.String(), "the supervisor has ended") {
		t.Errorf("%v: %q", err, c.out.String())
	}
}

func TestNoSupervisor(t *testing.T) {
	if c, err := supervise.Dial(""); c != nil || err != nil {
		t.Errorf("without a supervisor: %v, %v", c, err)
	}
	if _, err := supervise.Dial("3"); err == nil {
		t.Error("a value without an inode was accepted")
	}
}
