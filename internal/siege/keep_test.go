//go:build linux

package siege

import (
	"os/exec"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/secure"
)

// A keep has the certificates of a castle. Each party has a directory in it.
type keep struct{ dir string }

// newKeep makes certificates for a manager on the loopback, and for an operator.
func newKeep(t *testing.T) *keep {
	t.Helper()
	k := &keep{dir: filepath.Join(t.TempDir(), "pki")}
	if out, err := exec.Command(leaseholdProgram(), "pki", "init", "--dir", k.dir, "--managers", "m1=127.0.0.1", "--operators", "honest").CombinedOutput(); err != nil {
		t.Fatalf("pki init: %v\n%s", err, out)
	}
	return k
}

// files are those of one party.
func (k *keep) files(party string) secure.Config {
	dir := filepath.Join(k.dir, party)
	return secure.Config{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), Roots: filepath.Join(dir, "ca.crt")}
}

// credentials are those of a party that calls.
func (k *keep) credentials(t *testing.T, party string) credentials.TransportCredentials {
	t.Helper()
	keeper, err := secure.Open(k.files(party))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keeper.Close)
	return keeper.Client()
}

// launch is how the manager is started.
func (k *keep) launch(t *testing.T, addr string) launch {
	t.Helper()
	return launch{name: "manager", program: filepath.Join(programs, "tlsmanager"), args: []string{
		"-listen", addr, "-files", filepath.Join(k.dir, "manager", "m1"), "-data", filepath.Join(t.TempDir(), "data"),
	}}
}
