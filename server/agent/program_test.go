package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

const agentPort = 7404

// startAgent runs an agent on a node until the node is killed or the test ends.
func startAgent(t *testing.T, c *leaseholdtest.Cluster, node string, change ...func(*Config)) *Agent {
	t.Helper()
	n := c.Node(node)
	cfg := Config{Managers: c.Managers(), Credentials: insecure.NewCredentials(), DialOptions: n.DialOptions(), Hosts: []string{node}}
	for _, f := range change {
		f(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	listener := n.Listen(agentPort)
	go func() { ended <- a.Serve(ctx, listener) }()
	n.Cleanup(func(within context.Context) {
		if within.Err() != nil { // the node was killed: no graceful stop
			a.Close(within)
		}
		cancel()
		if err := <-ended; err != nil && within.Err() == nil {
			t.Error(err)
		}
	})
	return a
}

// A program is a client of an agent, in Go.
type program struct {
	t    *testing.T
	node *leaseholdtest.Node
	base string
	http *http.Client
	id   string
}

func newProgram(t *testing.T, c *leaseholdtest.Cluster, node string) *program {
	n := c.Node(node)
	transport := &http.Transport{DialContext: n.DialContext, DisableKeepAlives: true}
	return &program{t: t, node: n, base: fmt.Sprintf("http://%s:%d", node, agentPort), http: &http.Client{Transport: transport, Timeout: time.Minute}}
}

// call sends a request to the agent. It returns the status, and an error if the response is not a
// success.
func (p *program) call(method, path string, body, into any) (int, error) {
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		text = bytes.NewReader(encoded)
	}
	r, err := http.NewRequest(method, p.base+path, text)
	if err != nil {
		return 0, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	w, err := p.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer w.Body.Close() //nolint:errcheck // read-only
	answer, err := io.ReadAll(w.Body)
	if err != nil {
		return 0, err
	}
	if w.StatusCode >= 300 {
		var d errorDocument
		if err := json.Unmarshal(answer, &d); err != nil {
			return w.StatusCode, err
		}
		return w.StatusCode, errors.New(d.Error.Kind + ": " + d.Error.Message)
	}
	return w.StatusCode, json.Unmarshal(answer, into)
}

func (p *program) must(method, path string, body, into any) {
	p.t.Helper()
	if _, err := p.call(method, path, body, into); err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
}

type object map[string]any

func (p *program) join(c *leaseholdtest.Cluster, with object) {
	p.t.Helper()
	body := object{"namespace": string(c.Namespace()), "addr": p.node.Addr(), "name": p.node.Name()}
	for k, v := range with {
		body[k] = v
	}
	var joined joinAnswer
	p.must("POST", "/v1/owners", body, &joined)
	p.id = joined.ID
}

func (p *program) path(rest string) string { return "/v1/owners/" + p.id + rest }

// lines reads a stream until it ends.
func (p *program) lines(ctx context.Context, path string) <-chan map[string]any {
	p.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	client := *p.http
	client.Timeout = 0
	w, err := client.Do(r) //nolint:bodyclose // the goroutine that reads it does
	if err != nil {
		p.t.Fatal(err)
	}
	if w.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(w.Body)
		_ = w.Body.Close()
		p.t.Fatalf("GET %s: %s: %s", path, w.Status, text)
	}
	out := make(chan map[string]any, 1024)
	go func() {
		defer close(out)
		defer w.Body.Close() //nolint:errcheck // read-only
		for s := bufio.NewScanner(w.Body); s.Scan(); {
			line := map[string]any{}
			if err := json.Unmarshal(s.Bytes(), &line); err != nil {
				p.t.Errorf("%q: %v", s.Text(), err)
			}
			if line["type"] != "alive" {
				out <- line
			}
		}
	}()
	return out
}

// A view is the set of leases of the last response, and the end of their validity.
type view struct {
	leases []leaseDocument
	until  time.Time
}

// ask requests the current view. Its validity counts from before the request.
func (p *program) ask() (view, error) {
	sent := time.Now()
	var in leasesAnswer
	if _, err := p.call("POST", p.path("/leases"), object{}, &in); err != nil {
		return view{}, err
	}
	return view{in.Leases, sent.Add(time.Duration(in.ValidForMS) * time.Millisecond)}, nil
}

func (b view) owns(key leasehold.Key) bool {
	if !time.Now().Before(b.until) {
		return false
	}
	for _, l := range b.leases {
		if l.Keys().Contains(key) {
			return true
		}
	}
	return false
}

// probes returns keys from the whole key space.
func probes() []leasehold.Key {
	out := make([]leasehold.Key, 64)
	for i := range out {
		out[i] = leasehold.Key(i) << 58
	}
	return out
}
