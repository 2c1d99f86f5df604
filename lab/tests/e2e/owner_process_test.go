//go:build unix

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// ownerVariable makes a copy of this test binary an owner. It reads a command per line on
// standard input, and writes a line of JSON for each.
const ownerVariable = "LEASEHOLD_E2E_OWNER"

// An ownerConfig is the value of ownerVariable.
type ownerConfig struct {
	Namespace leasehold.Namespace
	Managers  []string
	Name      leasehold.OwnerID
}

// An ownerAnswer is a line of output of an owner process.
type ownerAnswer struct {
	Error  string
	Leases []leasehold.Lease // held
	Pulse  pulse             // since askWatch
}

// The commands of an owner process.
const (
	askLeases = "leases"
	askWatch  = "watch" // monitor the leases that are held now
)

// runOwner is the main function of an owner process. It ends with its standard input, that
// is, with the test.
func runOwner(text string, in io.Reader, out io.Writer) int {
	responses := json.NewEncoder(out)
	o, err := joinAs(text)
	if err != nil {
		_ = responses.Encode(ownerAnswer{Error: err.Error()}) // fails if the test has ended
		return 1
	}
	stop, self := func() {}, new(selfMonitor)
	questions := bufio.NewScanner(in)
	for err = responses.Encode(ownerAnswer{}); err == nil && questions.Scan(); {
		switch questions.Text() {
		case askWatch:
			stop()
			self = &selfMonitor{owner: o, keys: o.Leases(), last: time.Now()}
			stop = everyMillisecond(self.checkLeases)
			err = responses.Encode(ownerAnswer{})
		case askLeases:
			err = responses.Encode(ownerAnswer{Leases: o.Leases(), Pulse: self.result()})
		}
	}
	return 1
}

func joinAs(text string) (*owner.Owner, error) {
	var config ownerConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
	defer cancel()
	return owner.Join(ctx, owner.Config{
		Namespace: config.Namespace, Managers: config.Managers, Name: config.Name, Addr: addrOf(string(config.Name)),
	})
}

// An ownerProcess is an owner in a separate process, for SIGKILL and SIGSTOP.
type ownerProcess struct {
	*process
	responses *json.Decoder
}

// joinProcess starts an owner process, and waits until it has joined.
func (g *group) joinProcess(t *testing.T, ns, name string) *ownerProcess {
	t.Helper()
	return g.startCopy(t, ownerVariable, ns, name, filepath.Join(t.TempDir(), name+".log"))
}

// startCopy starts a copy of this binary in the role of a variable, and waits until it is
// ready.
func (g *group) startCopy(t *testing.T, variable, ns, name, log string) *ownerProcess {
	t.Helper()
	config, err := json.Marshal(ownerConfig{leasehold.Namespace(ns), g.addrs(), leasehold.OwnerID(name)})
	if err != nil {
		t.Fatal(err)
	}
	p := &ownerProcess{process: launch{
		program: os.Args[0], env: []string{variable + "=" + string(config)}, log: log, piped: true,
	}.start(t)}
	p.responses = json.NewDecoder(p.stdout)
	p.response(t)
	return p
}

// query sends a command, and returns the response.
func (p *ownerProcess) query(t *testing.T, request string) ownerAnswer {
	t.Helper()
	if _, err := fmt.Fprintln(p.Stdin(), request); err != nil {
		t.Fatal(err)
	}
	return p.response(t)
}

func (p *ownerProcess) response(t *testing.T) (a ownerAnswer) {
	t.Helper()
	late := time.AfterFunc(eventTimeout, p.kill) // closes its output
	defer late.Stop()
	if err := p.responses.Decode(&a); err != nil || a.Error != "" {
		t.Fatalf("no response from the owner process: %v %s", err, a.Error)
	}
	return a
}
