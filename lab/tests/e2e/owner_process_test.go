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

// ownerVariable is set in the environment of an owner process: a copy of this
// test binary that joins a namespace and answers questions, one line of JSON for
// each line that it is sent.
const ownerVariable = "LEASEHOLD_E2E_OWNER"

// An ownerOrder is what ownerVariable says.
type ownerOrder struct {
	Namespace leasehold.Namespace
	Managers  []string
	Name      leasehold.OwnerID
}

// An ownerAnswer is what an owner process says.
type ownerAnswer struct {
	Error  string
	Leases []leasehold.Lease // held now
	Pulse  pulse             // since it was told to watch itself
}

// The questions to an owner process.
const (
	askLeases = "leases"
	askWatch  = "watch" // from now on, watch that the leases of now are held
)

// beOwner is the main function of an owner process. It ends with its standard
// input, that is with the test.
func beOwner(text string, in io.Reader, out io.Writer) int {
	answers := json.NewEncoder(out)
	o, err := joinAs(text)
	if err != nil {
		_ = answers.Encode(ownerAnswer{Error: err.Error()}) // or nobody is there to be told
		return 1
	}
	stop, self := func() {}, new(watchful)
	questions := bufio.NewScanner(in)
	for err = answers.Encode(ownerAnswer{}); err == nil && questions.Scan(); {
		switch questions.Text() {
		case askWatch:
			stop()
			self = &watchful{owner: o, keys: o.Leases(), last: time.Now()}
			stop = everyMillisecond(self.look)
			err = answers.Encode(ownerAnswer{})
		case askLeases:
			err = answers.Encode(ownerAnswer{Leases: o.Leases(), Pulse: self.seen()})
		}
	}
	return 1
}

func joinAs(text string) (*owner.Owner, error) {
	var order ownerOrder
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return owner.Join(ctx, owner.Config{
		Namespace: order.Namespace, Managers: order.Managers, Name: order.Name, Addr: addrOf(string(order.Name)),
	})
}

// An ownerProcess is an owner that can be killed and stopped.
type ownerProcess struct {
	*process
	answers *json.Decoder
}

// joinProcess starts an owner process and waits until it has joined.
func (g *group) joinProcess(t *testing.T, ns, name string) *ownerProcess {
	t.Helper()
	return g.talkTo(t, ownerVariable, ns, name, filepath.Join(t.TempDir(), name+".log"))
}

// talkTo starts a copy of this binary that is to be an owner, in a way that a variable
// chooses, and waits until it says that it is.
func (g *group) talkTo(t *testing.T, variable, ns, name, log string) *ownerProcess {
	t.Helper()
	order, err := json.Marshal(ownerOrder{leasehold.Namespace(ns), g.addrs(), leasehold.OwnerID(name)})
	if err != nil {
		t.Fatal(err)
	}
	p := &ownerProcess{process: launch{
		program: os.Args[0], env: []string{variable + "=" + string(order)}, log: log, talk: true,
	}.start(t)}
	p.answers = json.NewDecoder(p.stdout)
	p.answer(t)
	return p
}

// ask asks a process that is not stopped.
func (p *ownerProcess) ask(t *testing.T, question string) ownerAnswer {
	t.Helper()
	if _, err := fmt.Fprintln(p.Stdin(), question); err != nil {
		t.Fatal(err)
	}
	return p.answer(t)
}

func (p *ownerProcess) answer(t *testing.T) (a ownerAnswer) {
	t.Helper()
	late := time.AfterFunc(patience, p.kill) // ends its output
	defer late.Stop()
	if err := p.answers.Decode(&a); err != nil || a.Error != "" {
		t.Fatalf("the owner process does not answer: %v %s", err, a.Error)
	}
	return a
}
