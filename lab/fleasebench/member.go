package fleasebench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

// A setup is the first message to a member. Orders follow, and each is answered.
type setup struct {
	Self        flease.ID
	Members     []flease.Member
	Lease       time.Duration
	Leases      int // of a batch
	Sealed, TCP bool
}

type order string

const (
	acquire    order = "acquire"
	release    order = "release"
	measureCPU order = "cpu"
)

type answer struct {
	Error string
	CPU   time.Duration // used so far
}

func (s *setup) config(log *slog.Logger) flease.Config {
	c := flease.Config{Self: s.Self, Members: s.Members, Lease: s.Lease, Epsilon: 100 * time.Millisecond, Logger: log}
	if s.Sealed {
		c.Key = secret.New("a key that is good enough to measure with")
	}
	if s.TCP {
		c.Transport = flease.TCP{}
	}
	return c
}

// RunMember is a member: it carries out the orders of [Run], its parent, until there
// are no more.
func RunMember(ctx context.Context, in io.Reader, out io.Writer, log *slog.Logger) error {
	debug.SetGCPercent(400) // the members share the processors of one computer
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	var s setup
	if err := orders.Decode(&s); err != nil {
		return err
	}
	node, err := flease.Start(s.config(log))
	if err != nil {
		return err
	}
	w := &worker{node: node, names: make([]string, s.Leases)}
	w.prepare()
	err = errors.Join(node.Ready(ctx), w.work(ctx, orders, answers))
	ended, cancel := context.WithCancel(context.Background())
	cancel() // the others end, too: no member needs to be told
	_ = node.Close(ended)
	return err
}

// A worker acquires and releases batches of new resources.
type worker struct {
	node   *flease.Node
	batch  int
	names  []string
	leases []*flease.Lease
}

func (w *worker) work(ctx context.Context, orders *json.Decoder, answers *json.Encoder) error {
	if err := answers.Encode(answer{}); err != nil { // ready
		return err
	}
	for {
		var next order
		if err := orders.Decode(&next); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var a answer
		if err := w.do(ctx, next); err != nil {
			a.Error = err.Error()
		}
		a.CPU = cpuTime()
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

func (w *worker) do(ctx context.Context, o order) (err error) {
	switch o {
	case measureCPU: // the answer has it
	case acquire:
		w.leases, err = w.node.AcquireAll(ctx, w.names)
	case release:
		err = w.node.ReleaseAll(ctx, w.leases)
		w.prepare()
	default:
		err = fmt.Errorf("there is no order %q", o)
	}
	return err
}

// prepare names the resources of the next batch.
func (w *worker) prepare() {
	w.batch++
	for i := range w.names {
		w.names[i] = fmt.Sprintf("member-%d/batch-%d/%d", w.node.Self(), w.batch, i)
	}
}
