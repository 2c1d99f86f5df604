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

// A delay holds back the next change of a document, and returns an error to its sender.
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
	return nil, errors.New("the frontend has ended")
}

// TestLateAddress: a delayed change with an old address does not replace a newer one.
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
			t.Fatal("no request was held back")
		}
		answer, err := late.RoundTripper.RoundTrip(kept)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		m.documents.Advance(time.Second)
		if got := work.Address("home"); got != "10.0.0.3" {
			t.Errorf("home is at %q, its old address", got)
		}
	})
}

// TestDeleted: when the document of a watched device is deleted, its address is removed, both
// by the message and, if that was lost, by reading the document again.
func TestDeleted(t *testing.T) {
	for _, away := range []bool{false, true} {
		inMesh(t, 1, func(m *mesh, _, _ *device.Device) {
			t := m.t
			laptop, api := m.device("laptop", "10.0.0.7", "printer"), m.reach("somebody")
			printer := documents.Change{Set: map[string]json.RawMessage{device.Section: json.RawMessage(`"10.0.0.8"`)}}
			if _, err := api.Change(t.Context(), "printer", printer); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			var running errgroup.Group
			running.Go(func() error { return laptop.Run(ctx) })
			m.documents.Advance(time.Second)
			if got := laptop.Address("printer"); got != "10.0.0.8" {
				t.Errorf("the printer is at %q", got)
			}
			if away { // the queues are lost, and the message with them
				m.queues.Node("queues-1").Kill()
				m.queues.Node("queues-2").Kill()
			}
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := api.Delete(short, "printer"); (err != nil) != away {
				t.Error(err)
			}
			cancel()
			if away {
				m.serveQueues(m.queues.Node("queues-1"))
			}
			m.settle()
			m.documents.Advance(10 * time.Second)
			if got := laptop.Address("printer"); got != "" {
				t.Errorf("the printer is at %q, want no address", got)
			}
			stop()
			if err := running.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
