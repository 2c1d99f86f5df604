package queue_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
func alone(t *testing.T, cfg queue.Config, test func(t *testing.T, c *leaseholdtest.Cluster, asks *queue.Client)) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"), cfg)
		c.Settle()
		test(t, c, client(t, c, c.Node("caller")))
	})
}

func receive(t *testing.T, asks *queue.Client, at queue.Place, wait time.Duration) queue.Batch {
	t.Helper()
	b, err := asks.Receive(t.Context(), "phone", at, wait)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func enqueue(t *testing.T, asks *queue.Client, body any) queue.Receipt {
	t.Helper()
	r, err := asks.Enqueue(t.Context(), "phone", body, false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Messages stay until the device says that it has them.
func TestReceive(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, asks *queue.Client) {
		b := receive(t, asks, queue.Place{}, 0)
		if len(b.Messages) != 0 || b.Lost || b.Epoch == "" {
			t.Errorf("a new queue: %+v", b)
		}
		at := b.Next(queue.Place{})
		for i := range 3 {
			if r := enqueue(t, asks, i); r.Epoch != b.Epoch || r.Number != uint64(i+1) {
				t.Errorf("%+v", r)
			}
		}
		for range 2 { // the first answer may not have arrived
			if b = receive(t, asks, at, 0); len(b.Messages) != 3 || string(b.Messages[2].Body) != "2" {
				t.Errorf("%+v", b)
			}
		}
		at = b.Next(at)
		if b = receive(t, asks, at, 0); len(b.Messages) != 0 {
			t.Errorf("%+v", b)
		}
		if b = receive(t, asks, queue.Place{Epoch: "0.7", Have: 77}, 0); !b.Lost {
			t.Errorf("another life of the queue: %+v", b)
		}
	})
}

// A device that waits hears of a message at once, and of nothing when its time is over.
func TestLongPoll(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, asks *queue.Client) {
		opened := receive(t, asks, queue.Place{}, 0)
		at := opened.Next(queue.Place{})
		began := time.Now()
		if b := receive(t, asks, at, 20*time.Second); len(b.Messages) != 0 || time.Since(began) < 20*time.Second {
			t.Errorf("after %v: %+v", time.Since(began), b)
		}
		got := make(chan queue.Batch, 1)
		go func() {
			b, err := asks.Receive(t.Context(), "phone", at, 30*time.Second)
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		c.Advance(5 * time.Second)
		began = time.Now()
		enqueue(t, asks, "now")
		if b := <-got; len(b.Messages) != 1 || time.Since(began) > time.Second {
			t.Errorf("after %v: %+v", time.Since(began), b)
		}
	})
}

// A device that waits for its first message learns that its queue has begun anew meanwhile.
func TestDeletedWhileWaiting(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, asks *queue.Client) {
		got := make(chan queue.Batch, 1)
		go func() {
			b, err := asks.Receive(t.Context(), "phone", queue.Place{}, 30*time.Second)
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		c.Advance(time.Second)
		meshtest.Check(t, asks.HTTP, asks.URL, []meshtest.Case{{What: "deleted", Method: "DELETE", Path: "/queues/phone", Status: 204}})
		enqueue(t, asks, "now")
		if b := <-got; !b.Lost || len(b.Messages) != 1 {
			t.Errorf("%+v", b)
		}
	})
}

// A full queue refuses, or marks that something was missed; it takes more when the device
// has taken some.
func TestFull(t *testing.T) {
	alone(t, queue.Config{Room: 3}, func(t *testing.T, _ *leaseholdtest.Cluster, asks *queue.Client) {
		opened := receive(t, asks, queue.Place{}, 0)
		at := opened.Next(queue.Place{})
		for i := range 3 {
			enqueue(t, asks, i)
		}
		if _, err := asks.Enqueue(t.Context(), "phone", 3, false); !errors.Is(err, leasehold.ErrLimit) {
			t.Errorf("a message too many: %v", err)
		}
		for i := range 5 {
			if _, err := asks.Enqueue(t.Context(), "phone", i, true); err != nil {
				t.Error(err)
			}
		}
		b := receive(t, asks, at, 0)
		if len(b.Messages) != 4 || !b.Messages[3].Missed {
			t.Fatalf("%+v", b)
		}
		if _, err := asks.Enqueue(t.Context(), "phone", "after the mark was seen", true); err != nil {
			t.Error(err)
		}
		at = b.Next(at)
		if b = receive(t, asks, at, 0); len(b.Messages) != 1 || !b.Messages[0].Missed {
			t.Errorf("missed after the first mark: %+v", b)
		}
		at = b.Next(at)
		receive(t, asks, at, 0) // says that it has all
		enqueue(t, asks, "room")
	})
}

// A queue that nobody touches expires, and its device learns that it may have lost messages.
func TestExpires(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, asks *queue.Client) {
		opened := receive(t, asks, queue.Place{}, 0)
		at := opened.Next(queue.Place{})
		enqueue(t, asks, 1)
		c.Advance(2 * time.Hour)
		if b := receive(t, asks, at, 0); !b.Lost || len(b.Messages) != 0 {
			t.Errorf("%+v", b)
		}
	})
}

// Messages are pushed to a device that is online, once each, from where it left off.
func TestPush(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, asks *queue.Client) {
		receive(t, asks, queue.Place{}, 0)
		enqueue(t, asks, "first")
		lines, end := events(t, asks, "")
		id := wantEvent(t, lines, `"first"`)
		enqueue(t, asks, "second")
		wantEvent(t, lines, `"second"`)
		end()
		c.Advance(time.Second)
		lines, end = events(t, asks, id)
		defer end()
		wantEvent(t, lines, `"second"`) // it had not said that it has it
		if b := receive(t, asks, queue.Place{}, 0); len(b.Messages) != 1 || b.Messages[0].Number != 2 {
			t.Errorf("it has said that it has the first: %+v", b)
		}
	})
}

// A device that comes with another life of its queue is told first that it has lost messages.
func TestPushLost(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, asks *queue.Client) {
		enqueue(t, asks, "first")
		lines, end := events(t, asks, "0.7/77")
		defer end()
		if !lines.Scan() || lines.Text() != "event: lost" {
			t.Fatalf("%q", lines.Text())
		}
		if !lines.Scan() || !strings.HasSuffix(lines.Text(), "/0") {
			t.Errorf("%q: it has nothing of this one yet", lines.Text())
		}
		wantEvent(t, lines, "{}")
		wantEvent(t, lines, `"first"`)
	})
}

func events(t *testing.T, asks *queue.Client, last string) (*bufio.Scanner, func()) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, asks.URL+"/queues/phone/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	pushes := *asks.HTTP
	pushes.Timeout = 0
	answer, err := pushes.Do(r) //nolint:bodyclose // what is returned closes it
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %v", answer.Status, answer.Header)
	}
	return bufio.NewScanner(answer.Body), func() { _ = answer.Body.Close() }
}

// wantEvent reads up to the next event, and returns its id.
func wantEvent(t *testing.T, lines *bufio.Scanner, body string) (id string) {
	t.Helper()
	alive := false // it says that the server is there, and no more
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			id = text
		}
		if lines.Text() == "" {
			alive = false
		}
		alive = alive || lines.Text() == "event: alive"
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && !alive {
			if !strings.Contains(data, body) {
				t.Errorf("%s, want %s", data, body)
			}
			return id
		}
	}
	t.Fatalf("the stream has ended: %v", lines.Err())
	return ""
}

// A device hears, through its queue, what was lost of another service, and of that only; and
// so it does if the queue has moved meanwhile.
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
		asks := client(t, c, c.Node("caller"))
		opened := receive(t, asks, queue.Place{}, 0)
		at := opened.Next(queue.Place{})
		if err := asks.SetInterests(t.Context(), "phone", []queue.Interest{{Service: "documents", Name: "home"}}); err != nil {
			t.Fatal(err)
		}
		if err := asks.SetInterests(t.Context(), "phone", []queue.Interest{{Service: "none", Name: "home"}}); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("a service that is not there: %v", err)
		}
		began, waiting := time.Now(), make(chan queue.Batch, 1)
		go func() {
			b, err := asks.Receive(t.Context(), "phone", at, 55*time.Second)
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
			t.Errorf("it waited for %v", took)
		}
		if len(b.Messages) != 1 || b.Messages[0].Lost == nil || b.Messages[0].Lost.Names[0] != "home" {
			t.Fatalf("%+v", b)
		}
		at = b.Next(at)
		if b := receive(t, asks, at, 0); len(b.Messages) != 0 {
			t.Errorf("it was told already: %+v", b)
		}

		// The queue moves while a server of the other service dies.
		others.Node("lives").Kill()
		serve(t, c.Node("b"), queue.Config{Watch: watch(c.Node("b"))})
		c.Advance(2 * time.Second)
		if err := leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		others.Node("third").Join(owner.Config{})
		others.Settle()
		if b = receive(t, asks, at, 0); b.Lost || len(b.Messages) == 0 || b.Messages[0].Lost == nil {
			t.Errorf("after a move: %+v", b)
		}
	})
}

// A queue has room for so many bytes, too.
func TestFullOfBytes(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, asks *queue.Client) {
		long := strings.Repeat("x", queue.MaxMessage-2)
		fit := 0
		const most = queue.MaxBytes / queue.MaxMessage
		for range most + 1 {
			_, err := asks.Enqueue(t.Context(), "phone", long, false)
			if err == nil {
				fit++
			} else if !errors.Is(err, leasehold.ErrLimit) {
				t.Fatal(err)
			}
		}
		if fit < most-1 || fit > most {
			t.Errorf("%d messages of %d bytes have found room", fit, queue.MaxMessage)
		}
		if _, err := asks.Enqueue(t.Context(), "phone", long, true); err != nil {
			t.Errorf("a mark: %v", err)
		}
		if b := receive(t, asks, queue.Place{}, 0); len(b.Messages) != fit+1 || !b.Messages[fit].Missed {
			t.Errorf("%d messages", len(b.Messages))
		}
	})
}

// Every kind of bad input has a status of its own.
func TestStatuses(t *testing.T) {
	alone(t, queue.Config{}, func(t *testing.T, _ *leaseholdtest.Cluster, asks *queue.Client) {
		long := `"` + strings.Repeat("x", queue.MaxMessage) + `"`
		const event = "Last-Event-ID: nonsense"
		meshtest.Check(t, asks.HTTP, asks.URL+"/queues/phone/", []meshtest.Case{
			{What: "not JSON", Method: "POST", Path: "messages", Body: "{", Status: 400},
			{What: "too long", Method: "POST", Path: "messages", Body: long, Status: 413},
			{What: "a bad number", Method: "GET", Path: "messages?epoch=1.1&after=x", Status: 400},
			{What: "a number of no life", Method: "GET", Path: "messages?after=3", Status: 400, Has: "without epoch"},
			{What: "a bad time", Method: "GET", Path: "messages?wait=forever", Status: 400},
			{What: "too long a time", Method: "GET", Path: "messages?wait=1h", Status: 400},
			{What: "no list", Method: "PUT", Path: "interests", Body: "{}", Status: 400},
			{What: "nothing to depend on", Method: "PUT", Path: "interests", Body: `[{"service": "documents"}]`, Status: 400, Has: "a name"},
			{What: "what overflow is", Method: "POST", Path: "messages?overflow=drop", Body: "1", Status: 400, Has: "mark"},
			{What: "a bad event", Method: "GET", Path: "events", Header: event, Status: 400},
			{What: "a bad place", Method: "GET", Path: "events?epoch=1.1&after=x", Status: 400},
		})
		b := receive(t, asks, queue.Place{}, 0)
		if _, err := asks.Receive(t.Context(), "phone", queue.Place{Epoch: b.Epoch, Have: 99}, 0); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("a message that never was: %v", err)
		}
	})
}

// A queue can be moved and received, however full it is and whatever it is full of.
func TestFullQueueMoves(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		watch := map[string]*lookup.Lookup{"documents": meshtest.Lookup(t, c.In("documents"), c.Node("a"))}
		serve(t, c.Node("a"), queue.Config{Watch: watch})
		c.Settle()
		asks := client(t, c, c.Node("caller"))
		opened := receive(t, asks, queue.Place{}, 0)
		interests := make([]queue.Interest, queue.MaxInterests)
		for i := range interests {
			interests[i] = queue.Interest{Service: "documents", Name: fmt.Sprintf("%0*d", jsonhttp.MaxName, i)}
		}
		if err := asks.SetInterests(t.Context(), "phone", interests); err != nil {
			t.Fatal(err)
		}
		long, sent := json.RawMessage(`"`+strings.Repeat("<", queue.MaxMessage-2)+`"`), 0
		for ; ; sent++ {
			if _, err := asks.Enqueue(t.Context(), "phone", long, false); errors.Is(err, leasehold.ErrLimit) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		serve(t, c.Node("b"), queue.Config{Watch: watch})
		c.Settle()
		c.Move(leasehold.All, "b")
		b := receive(t, asks, opened.Next(queue.Place{}), 0)
		if b.Lost || len(b.Messages) != sent || sent == 0 {
			t.Errorf("%d messages of %d have moved, lost: %v", len(b.Messages), sent, b.Lost)
		}
	})
}
