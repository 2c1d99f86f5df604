package device_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/device"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A mesh is all services on one cluster.
type mesh struct {
	t                         *testing.T
	documents, topics, queues *leaseholdtest.Cluster
	nemeses                   []*leaseholdtest.Nemesis // of each service
	late                      map[string]*delay        // of each device
}

// newMesh starts two servers of each service, and a frontend.
func newMesh(t *testing.T, c *leaseholdtest.Cluster, seed uint64) *mesh {
	t.Helper()
	m := &mesh{t: t, documents: c, topics: c.In("topics"), queues: c.In("queues"), late: make(map[string]*delay)}
	random := rand.New(rand.NewPCG(seed, 99))
	for _, s := range []struct {
		in    *leaseholdtest.Cluster
		start func(*leaseholdtest.Node) func(context.Context) error
	}{{m.queues, m.serveQueues}, {m.topics, m.serveTopics}, {m.documents, m.serveDocuments}} {
		e := &leaseholdtest.Nemesis{Random: random, Start: s.start}
		name := string(s.in.Namespace())
		e.Begin(s.in, name+"-1", name+"-2")
		m.nemeses = append(m.nemeses, e)
	}
	m.serveFrontend(c.Node("frontend"))
	return m
}

func (m *mesh) serveDocuments(n *leaseholdtest.Node) func(context.Context) error {
	topics := &pubsub.Client{Client: meshtest.Client(m.t, m.topics, n)}
	s, err := documents.Join(m.t.Context(), n.MovingConfig(), func(ctx context.Context, news documents.News) error {
		_, err := topics.Publish(ctx, news.Document, news)
		return err
	})
	return meshtest.Serve(m.t, n, s, err)
}

func (m *mesh) serveTopics(n *leaseholdtest.Node) func(context.Context) error {
	s, err := pubsub.Join(m.t.Context(), n.MovingConfig(), &queue.Client{Client: meshtest.Client(m.t, m.queues, n)})
	return meshtest.Serve(m.t, n, s, err)
}

func (m *mesh) serveQueues(n *leaseholdtest.Node) func(context.Context) error {
	watch := make(map[string]*lookup.Lookup)
	for _, c := range []*leaseholdtest.Cluster{m.documents, m.topics} {
		watch[string(c.Namespace())] = meshtest.Lookup(m.t, c, n)
	}
	s, err := queue.Join(m.t.Context(), n.MovingConfig(), queue.Config{Watch: watch})
	return meshtest.Serve(m.t, n, s, err)
}

func (m *mesh) serveFrontend(n *leaseholdtest.Node) {
	base := &http.Transport{DialContext: n.DialContext}
	n.Cleanup(func(context.Context) { base.CloseIdleConnections() })
	cfg := frontend.Config{Base: base}
	for _, c := range []*leaseholdtest.Cluster{m.documents, m.topics, m.queues} {
		cfg.Services = append(cfg.Services, frontend.Service{Prefix: "/" + string(c.Namespace()) + "/", Lookup: meshtest.Lookup(m.t, c, n)})
	}
	handler, err := frontend.New(cfg)
	if err != nil {
		m.t.Fatal(err)
	}
	n.Serve(handler)
}

// device returns a device that uses the frontend and watches others.
func (m *mesh) device(name, address string, watch ...string) *device.Device {
	api := m.reach(name)
	return device.New(device.Config{
		Name: name, Watch: watch, Logger: slog.New(slog.DiscardHandler),
		Frontend: api.Client,
	}, address)
}

// reach returns a client of documents through the frontend.
func (m *mesh) reach(name string) *documents.Client {
	n := m.documents.Node(name)
	transport := &http.Transport{DialContext: n.DialContext}
	n.Cleanup(func(context.Context) { transport.CloseIdleConnections() })
	m.late[name] = &delay{RoundTripper: transport}
	return &documents.Client{Client: jsonhttp.Client{
		HTTP: &http.Client{Transport: m.late[name], Timeout: time.Minute},
		URL:  "http://" + m.documents.Node("frontend").Addr(),
	}}
}

// settle waits until all keys of all services have owners.
func (m *mesh) settle() {
	for _, c := range []*leaseholdtest.Cluster{m.documents, m.topics, m.queues} {
		c.Settle()
	}
}

// inMesh runs a test with two devices.
func inMesh(t *testing.T, seed uint64, test func(m *mesh, home, work *device.Device)) {
	leaseholdtest.Run(t, leaseholdtest.Config{Namespace: leasehold.Namespace(device.Documents)}, func(t *testing.T, c *leaseholdtest.Cluster) {
		m := newMesh(t, c, seed)
		m.settle()
		home, work := m.device("home", "10.0.0.1", "work"), m.device("work", "10.9.9.9", "home")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var running errgroup.Group
		running.Go(func() error { return home.Run(ctx) })
		running.Go(func() error { return work.Run(ctx) })
		test(m, home, work)
		stop()
		if err := running.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestDevicesMeet: each device receives the other's address within 100 ms.
func TestDevicesMeet(t *testing.T) {
	inMesh(t, 1, func(m *mesh, home, work *device.Device) {
		m.documents.Advance(time.Second)
		if got := work.Address("home"); got != "10.0.0.1" {
			t.Errorf("home is at %q", got)
		}
		if got := home.Address("work"); got != "10.9.9.9" {
			t.Errorf("work is at %q", got)
		}
		home.Move("10.0.0.2")
		m.documents.Advance(100 * time.Millisecond)
		if got := work.Address("home"); got != "10.0.0.2" {
			t.Errorf("home is at %q, want its new address", got)
		}
		m.documents.Advance(70 * time.Minute) // longer than all TTLs
		home.Move("10.0.0.3")
		m.documents.Advance(100 * time.Millisecond)
		if got := work.Address("home"); got != "10.0.0.3" {
			t.Errorf("home is at %q, more than an hour later", got)
		}
	})
}

// TestDevicesMeetAgain: after faults of servers and managers each device has the other's
// address again, without polling: the interval between refreshes is longer than the test waits.
func TestDevicesMeetAgain(t *testing.T) {
	for seed := range uint64(meshtest.Runs(25)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inMesh(t, seed, func(m *mesh, home, work *device.Device) {
				random := rand.New(rand.NewPCG(seed, 1))
				for i := range 4 {
					m.documents.Advance(time.Duration(random.IntN(3000)) * time.Millisecond)
					address := fmt.Sprint("10.0.1.", i)
					home.Move(address)
					t.Log(m.nemeses[random.IntN(len(m.nemeses))].Hurt())
					m.settle()
					m.documents.Advance(30 * time.Second)
					if got := work.Address("home"); got != address {
						t.Errorf("home is at %q, work has %q", address, got)
					}
					if got := home.Address("work"); got != "10.9.9.9" {
						t.Errorf("work is at %q", got)
					}
				}
			})
		})
	}
}
