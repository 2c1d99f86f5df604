package device_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/examples/livemesh/device"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
)

// A delay keeps the next change of a document back, as if it were still on its way, and has
// whoever sent it take it for lost.
type delay struct {
	http.RoundTripper
	armed atomic.Bool
	kept  atomic.Pointer[http.Request]
}

func (d *delay) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch || !d.armed.CompareAndSwap(true, false) {
		return d.RoundTripper.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	kept := r.Clone(context.WithoutCancel(r.Context()))
	kept.Body = io.NopCloser(bytes.NewReader(body))
	d.kept.Store(kept)
	return nil, errors.New("the frontend has died")
}

// An address that a device has given up, and that arrives after a later one, is not taken
// for its address.
func TestLateAddress(t *testing.T) {
	inMesh(t, 1, func(m *mesh, home, work *device.Device) {
		m.documents.Advance(time.Second)
		late := m.late["home"]
		late.armed.Store(true)
		home.Move("10.0.0.2")
		m.documents.Advance(10 * time.Millisecond)
		home.Move("10.0.0.3")
		m.documents.Advance(time.Second)
		kept := late.kept.Load()
		if kept == nil {
			t.Fatal("nothing was kept back")
		}
		answer, err := late.RoundTripper.RoundTrip(kept)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		m.documents.Advance(time.Second)
		if got := work.Address("home"); got != "10.0.0.3" {
			t.Errorf("home is at %q, and that is where it was", got)
		}
	})
}

// A device that learns of losses while the document of another is deleted knows that that one
// has no address any more; and so does one that hears of it.
func TestDeleted(t *testing.T) {
	for _, away := range []bool{false, true} {
		inMesh(t, 1, func(m *mesh, _, _ *device.Device) {
			t := m.t
			laptop, asks := m.device("laptop", "10.0.0.7", "printer"), m.reach("somebody")
			printer := documents.Change{Set: map[string]json.RawMessage{device.Section: json.RawMessage(`"10.0.0.8"`)}}
			if _, err := asks.Change(t.Context(), "printer", printer); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			var running errgroup.Group
			running.Go(func() error { return laptop.Run(ctx) })
			m.documents.Advance(time.Second)
			if got := laptop.Address("printer"); got != "10.0.0.8" {
				t.Errorf("the printer is at %q", got)
			}
			if away { // the queues are lost, and nobody has the news
				m.queues.Node("queues-1").Kill()
				m.queues.Node("queues-2").Kill()
			}
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := asks.Delete(short, "printer"); (err != nil) != away {
				t.Error(err)
			}
			cancel()
			if away {
				m.serveQueues(m.queues.Node("queues-1"))
			}
			m.settle()
			m.documents.Advance(10 * time.Second)
			if got := laptop.Address("printer"); got != "" {
				t.Errorf("the printer is at %q, and it has no address", got)
			}
			stop()
			if err := running.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
