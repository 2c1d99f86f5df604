package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/leasehold-dev/leasehold/lab/chaos"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
)

// asUnprivileged is a script that drops root privileges, in a mount namespace where all users may open the
// network device, as on most systems.
const asUnprivileged = `mknod "$1/tun" c 10 200 && chmod 666 "$1/tun" && mount --bind "$1/tun" /dev/net/tun || exit 77
dir=$1; shift
exec setpriv --reuid 65534 --regid 65534 --clear-groups env TMPDIR="$dir" HOME="$dir" "$@"`

// TestChaosWithoutRoot runs chaos as an unprivileged user.
func TestChaosWithoutRoot(t *testing.T) {
	t.Parallel()
	if err := lan.Available(); err != nil || os.Geteuid() != 0 {
		t.Skipf("SKIPPED, NOT TESTED: the test requires root, to drop its privileges, and network namespaces: %v", err)
	}
	dir, err := os.MkdirTemp("", "leasehold-rootless-") // t.TempDir is not accessible to other users
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	program := filepath.Join(dir, "leasehold-lab")
	copyProgram(t, program)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if exec.Command("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "unshare", "--user", "--net", "true").Run() != nil {
		t.Skip("SKIPPED, NOT TESTED: unprivileged users cannot create user namespaces")
	}
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", asUnprivileged, "sh", dir,
		program, "chaos", "--faults", "4", "--seed", "1", "--slack", "30s", "--kinds", "owner-kill,leader-alone,clock-offset,disk-full", "--json")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	var r chaos.Report
	if err := json.Unmarshal(out, &r); err != nil || r.Faults != 4 || len(r.Violations) > 0 {
		t.Errorf("%v, %s", err, out)
	}
}

// copyProgram copies the command to a directory where all users may run it.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	path, err := exec.LookPath("leasehold-lab")
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close() //nolint:errcheck // it was only read
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, from); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
