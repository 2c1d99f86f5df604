//go:build unix

package e2e

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/internal/testkit/realservice"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// TestStoredNotesSurviveKills: servers whose map is stored in PostgreSQL are killed, or stopped for longer than their
// lease, while clients read and write. The history is linearizable: no acknowledged write is lost, or
// overwritten by an earlier owner.
func TestStoredNotesSurviveKills(t *testing.T) {
	t.Parallel()
	const ns, rounds, clientCount = "stored", 6, 16
	database := realservice.StartPostgreSQL(t)
	g := startLone(t)
	g.createNamespace(t, ns, lostLease)
	names := []string{"ann", "bob", "cid"}
	configs := make([]httpServerConfig, len(names))
	servers := make([]*process, len(names))
	for i, name := range names {
		configs[i] = httpServerConfig{leasehold.Namespace(ns), g.addrs(), leasehold.OwnerID(name), freeAddr(t), database.DSN}
		servers[i] = startHTTP(t, configs[i])
	}
	g.waitForAssignment(t, ns, names...)

	history := oracle.NewRegisters("alice", "bert", "carol", "dora", "emil")
	random := rand.New(rand.NewPCG(1, 1))
	asking := make(chan struct{})
	var clients sync.WaitGroup
	for i := range clientCount {
		client := g.openHTTP(t, ns)
		random := rand.New(rand.NewPCG(1, uint64(2+i)))
		clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-asking:
					return
				default:
				}
				history.Ask(i+clientCount*n, 1, 50*time.Millisecond, random, client.ask)
			}
		})
	}
	for range rounds {
		i := random.IntN(len(servers))
		if random.IntN(2) == 0 {
			servers[i].kill()
			g.waitForAssignment(t, ns, append(append([]string{}, names[:i]...), names[i+1:]...)...)
			servers[i] = startHTTP(t, configs[i])
		} else {
			servers[i].signal(t, syscall.SIGSTOP)
			g.waitForAssignment(t, ns, append(append([]string{}, names[:i]...), names[i+1:]...)...)
			servers[i].signal(t, syscall.SIGCONT)
		}
		g.waitForAssignment(t, ns, names...)
	}
	close(asking)
	clients.Wait()

	found, unknown := 0, 0
	for _, o := range history.History() {
		switch out := o.Output.(oracle.Answer); {
		case out.Unknown:
			unknown++
		case out.Value != "":
			found++
		}
	}
	t.Logf("%d operations, %d reads found a value, %d writes are indeterminate", len(history.History()), found, unknown)
	if result := porcupine.CheckOperationsTimeout(oracle.RegisterModel(), history.History(), time.Minute); result != porcupine.Ok {
		t.Errorf("the history is not linearizable (%v): %+v", result, history.History())
	}
	if found < 20*rounds {
		t.Error("the history has too few operations")
	}
}

// An httpClient sends requests to the owners of users.
type httpClient struct{ http.Client }

func (g *group) openHTTP(t *testing.T, ns string) *httpClient {
	t.Helper()
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: g.open(t, ns, eventTimeout).Lookup, Key: userKey})
	if err != nil {
		t.Fatal(err)
	}
	return &httpClient{http.Client{Transport: transport, Timeout: eventTimeout}}
}

// ask executes a request on the note of a user.
func (c *httpClient) ask(in *oracle.Request) (oracle.Answer, error) {
	method := http.MethodGet
	if in.Do != oracle.Read {
		in.Do, method = oracle.Write, http.MethodPost // is not repeated
	}
	r, err := http.NewRequestWithContext(context.Background(), method, "http://service/users/"+in.Name, strings.NewReader(in.Value))
	if err != nil {
		return oracle.Answer{}, err
	}
	response, err := c.Do(r)
	if err != nil {
		return oracle.Answer{}, leasehold.ErrIndeterminate
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return oracle.Answer{}, leasehold.Errorf("ask", leasehold.ErrIndeterminate, in.Name, "status %d: %s, %v", response.StatusCode, text, err)
	}
	if in.Do == oracle.Write {
		return oracle.Answer{}, nil
	}
	return oracle.Answer{Value: string(text)}, nil
}
