package queue_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// alone runs a test with one server.
func alone(t *testing.T, cfg queue.Config, test func(t *testing.T, c *leaseholdtest.Cluster, api *queue.Client)) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"), cfg)
		c.Settle()
		test(t, c, client(t, c, c.Node("caller")))
	})
}

func receive(t *testing.T, api *queue.Client, at queue.Place, wait time.Duration) queue.Batch {
	t.Helper()
	b, err := api.Receive(t.Context(), "phone", at, wait)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func enqueue(t *testing.T, api *queue.Client, body any) queue.Receipt {
	t.Helper()
	r, err := api.Enqueue(t.Context(), "phone", body, false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReceive: messages stay until the device acknowledges them.
func TestReceive(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, api *queue.Client) {
		b := receive(t, api, queue.Place{}, 0)
		if len(b.Messages) != 0 || b.Lost || b.Epoch == "" {
			t.Errorf("a new queue: %+v", b)
		}
		at := b.Next(queue.Place{})
		for i := range 3 {
			if r := enqueue(t, api, i); r.Epoch != b.Epoch || r.Number != uint64(i+1) {
				t.Errorf("%+v", r)
			}
		}
		for range 2 { // the first response may be lost
			if b = receive(t, api, at, 0); len(b.Messages) != 3 || string(b.Messages[2].Body) != "2" {
				t.Errorf("%+v", b)
			}
		}
		at = b.Next(at)
		if b = receive(t, api, at, 0); len(b.Messages) != 0 {
			t.Errorf("%+v", b)
		}
		if b = receive(t, api, queue.Place{Epoch: "0.7", Have: 77}, 0); !b.Lost {
			t.Errorf("another epoch: %+v", b)
		}
	})
}

// TestLongPoll: a waiting request returns when a message arrives, or empty at its timeout.
func TestLongPoll(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, api *queue.Client) {
		opened := receive(t, api, queue.Place{}, 0)
		at := opened.Next(queue.Place{})
		began := time.Now()
		if b := receive(t, api, at, 20*time.Second); len(b.Messages) != 0 || time.Since(began) < 20*time.Second {
			t.Errorf("after %v: %+v", time.Since(began), b)
		}
		got := make(chan queue.Batch, 1)
		go func() {
			b, err := api.Receive(t.Context(), "phone", at, 30*time.Second)
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		c.Advance(5 * time.Second)
		began = time.Now()
		enqueue(t, api, "now")
		if b := <-got; len(b.Messages) != 1 || time.Since(began) > time.Second {
			t.Errorf("after %v: %+v", time.Since(began), b)
		}
	})
}

// TestFull: a full queue refuses messages or leaves a mark; it accepts messages again after an
// acknowledgement.
func TestFull(t *testing.T) {
	alone(t, queue.Config{Room: 3}, func(t *testing.T, _ *leaseholdtest.Cluster, api *queue.Client) {
		opened := receive(t, api, queue.Place{}, 0)
		at := opened.Next(queue.Place{})
		for i := range 3 {
			enqueue(t, api, i)
		}
		if _, err := api.Enqueue(t.Context(), "phone", 3, false); !errors.Is(err, leasehold.ErrLimit) {
			t.Errorf("a message into a full queue: %v", err)
		}
		for i := range 5 {
			if _, err := api.Enqueue(t.Context(), "phone", i, true); err != nil {
				t.Error(err)
			}
		}
		b := receive(t, api, at, 0)
		if len(b.Messages) != 4 || !b.Messages[3].Missed {
			t.Fatalf("%+v", b)
		}
		if _, err := api.Enqueue(t.Context(), "phone", "after the mark was seen", true); err != nil {
			t.Error(err)
		}
		at = b.Next(at)
		if b = receive(t, api, at, 0); len(b.Messages) != 1 || !b.Messages[0].Missed {
			t.Errorf("missed after the first mark: %+v", b)
		}
		at = b.Next(at)
		receive(t, api, at, 0) // acknowledges all
		enqueue(t, api, "room")
	})
}

// TestExpires: a queue without requests expires, and its device receives a report of a loss.
func TestExpires(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, api *queue.Client) {
		opened := receive(t, api, queue.Place{}, 0)
		at := opened.Next(queue.Place{})
		enqueue(t, api, 1)
		c.Advance(2 * time.Hour)
		if b := receive(t, api, at, 0); !b.Lost || len(b.Messages) != 0 {
			t.Errorf("%+v", b)
		}
	})
}

// TestLossesOfOthers: a device receives the losses of its interests through its queue, also if
// the queue was transferred meanwhile.
func TestLossesOfOthers(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		others := c.In("documents")
		watch := func(n *leaseholdtest.Node) map[string]*lookup.Lookup {
			return map[string]*lookup.Lookup{"documents": meshtest.Lookup(t, others, n)}
		}
		leave := serve(t, c.Node("a"), queue.Config{Watch: watch(c.Node("a"))})
		dies := others.Node("dies")
		dies.Join(owner.Config{})
		c.Settle()
		others.Settle()
		api := client(t, c, c.Node("caller"))
		opened := receive(t, api, queue.Place{}, 0)
		at := opened.Next(queue.Place{})
		if err := api.SetInterests(t.Context(), "phone", []queue.Interest{{Service: "documents", Name: "home"}}); err != nil {
			t.Fatal(err)
		}
		if err := api.SetInterests(t.Context(), "phone", []queue.Interest{{Service: "none", Name: "home"}}); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("an unknown service: %v", err)
		}
		began, waiting := time.Now(), make(chan queue.Batch, 1)
		go func() {
			b, err := api.Receive(t.Context(), "phone", at, 55*time.Second)
			if err != nil {
				t.Error(err)
			}
			waiting <- b
		}()
		dies.Kill()
		others.Node("lives").Join(owner.Config{})
		others.Settle()
		b := <-waiting
		if took := time.Since(began); took > 50*time.Second {
			t.Errorf("the request waited for %v", took)
		}
		if len(b.Messages) != 1 || b.Messages[0].Lost == nil || b.Messages[0].Lost.Names[0] != "home" {
			t.Fatalf("%+v", b)
		}
		at = b.Next(at)
		if b := receive(t, api, at, 0); len(b.Messages) != 0 {
			t.Errorf("reported twice: %+v", b)
		}

		// The queue is transferred while a server of the other service is killed.
		others.Node("lives").Kill()
		serve(t, c.Node("b"), queue.Config{Watch: watch(c.Node("b"))})
		c.Advance(2 * time.Second)
		if err := leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		others.Node("third").Join(owner.Config{})
		others.Settle()
		if b = receive(t, api, at, 0); b.Lost || len(b.Messages) == 0 || b.Messages[0].Lost == nil {
			t.Errorf("after a move: %+v", b)
		}
	})
}

// TestFullOfBytes: the size of a queue in bytes is limited, too.
func TestFullOfBytes(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, api *queue.Client) {
		long := strings.Repeat("x", queue.MaxMessage-2)
		fit := 0
		const most = queue.MaxBytes / queue.MaxMessage
		for range most + 1 {
			_, err := api.Enqueue(t.Context(), "phone", long, false)
			if err == nil {
				fit++
			} else if !errors.Is(err, leasehold.ErrLimit) {
				t.Fatal(err)
			}
		}
		if fit < most-1 || fit > most {
			t.Errorf("%d messages of %d bytes fit", fit, queue.MaxMessage)
		}
		if _, err := api.Enqueue(t.Context(), "phone", long, true); err != nil {
			t.Errorf("a mark: %v", err)
		}
		if b := receive(t, api, queue.Place{}, 0); len(b.Messages) != fit+1 || !b.Messages[fit].Missed {
			t.Errorf("%d messages", len(b.Messages))
		}
	})
}

// TestStatuses: every kind of invalid input has its status.
func TestStatuses(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, api *queue.Client) {
		long := `"` + strings.Repeat("x", queue.MaxMessage) + `"`
		meshtest.Check(t, api.HTTP, api.URL+"/queues/phone/", []meshtest.Case{
			{What: "not JSON", Method: "POST", Path: "messages", Body: "{", Status: 400},
			{What: "too long", Method: "POST", Path: "messages", Body: long, Status: 400, Has: "are allowed"},
			{What: "far too long", Method: "POST", Path: "messages", Body: strings.Repeat(long, 17), Status: 413},
			{What: "a bad number", Method: "GET", Path: "messages?epoch=1.1&after=x", Status: 400},
			{What: "a number without an epoch", Method: "GET", Path: "messages?after=3", Status: 400, Has: "with its epoch"},
			{What: "a bad time", Method: "GET", Path: "messages?wait=forever", Status: 400},
			{What: "too long a time", Method: "GET", Path: "messages?wait=1h", Status: 400},
			{What: "no list", Method: "PUT", Path: "interests", Body: "{}", Status: 400},
			{What: "nothing to depend on", Method: "PUT", Path: "interests", Body: `[{"service": "documents"}]`, Status: 400, Has: "a name"},
		})
		b := receive(t, api, queue.Place{}, 0)
		if _, err := api.Receive(t.Context(), "phone", queue.Place{Epoch: b.Epoch, Have: 99}, 0); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("a message that does not exist: %v", err)
		}
	})
}

// TestFullQueueMoves: a queue of maximum size can be transferred and received.
func TestFullQueueMoves(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		watch := map[string]*lookup.Lookup{"documents": meshtest.Lookup(t, c.In("documents"), c.Node("a"))}
		serve(t, c.Node("a"), queue.Config{Watch: watch})
		c.Settle()
		api := client(t, c, c.Node("caller"))
		opened := receive(t, api, queue.Place{}, 0)
		interests := make([]queue.Interest, queue.MaxInterests)
		for i := range interests {
			interests[i] = queue.Interest{Service: "documents", Name: fmt.Sprintf("%0*d", jsonhttp.MaxName, i)}
		}
		if err := api.SetInterests(t.Context(), "phone", interests); err != nil {
			t.Fatal(err)
		}
		long, sent := json.RawMessage(`"`+strings.Repeat("<", queue.MaxMessage-2)+`"`), 0
		for ; ; sent++ {
			if _, err := api.Enqueue(t.Context(), "phone", long, false); errors.Is(err, leasehold.ErrLimit) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		serve(t, c.Node("b"), queue.Config{Watch: watch})
		c.Settle()
		c.Move(leasehold.All, "b")
		b := receive(t, api, opened.Next(queue.Place{}), 0)
		if b.Lost || len(b.Messages) != sent || sent == 0 {
			t.Errorf("%d messages of %d were transferred, lost: %v", len(b.Messages), sent, b.Lost)
		}
	})
}
