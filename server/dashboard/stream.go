package dashboard

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/server/httpauth"
)

const (
	// writePatience is the timeout of a write of writeAtOnce bytes. A large table over a slow
	// connection takes longer in total.
	writePatience = 20 * time.Second
	writeAtOnce   = 64 << 10
)

// stream sends the frames of a namespace to a visitor that may see it.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request) {
	namespace := r.FormValue("namespace")
	if namespace != "" {
		if err := leasehold.Namespace(namespace).Validate(); err != nil {
			refuse(w, err)
			return
		}
	}
	v, err := d.visitor(r)
	if err != nil {
		d.unauthorized(w, r, err)
		return
	}
	begun := false
	err = d.look(r, &v, namespace, func(ctx context.Context) {
		begun = true
		d.show(ctx, w, r, &v, namespace)
	})
	if err != nil && !begun {
		refuseWith(w, httpauth.Status(err), wire.ToError(err).Error())
	}
}

func (d *Dashboard) show(ctx context.Context, w http.ResponseWriter, r *http.Request, who *visitor, namespace string) {
	// The last frame is in a header if the browser reconnects, and in the query if the page does.
	h, v, err := d.hubs.join(who, namespace, cmp.Or(r.Header.Get("Last-Event-ID"), r.FormValue("last")))
	if err != nil {
		refuse(w, err)
		return
	}
	defer d.hubs.leave(h, v)
	out := &wireOut{to: w, control: http.NewResponseController(w), pack: d.hubs.pack}
	out.begin(acceptsGzip(r))
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.gone:
			return
		case <-v.wake:
		}
		for _, f := range h.take(v) {
			if ctx.Err() != nil || out.write(f) != nil {
				return
			}
		}
		if d.cfg.Access != nil {
			who.login.touch()
		}
	}
}

func acceptsGzip(r *http.Request) bool {
	for _, part := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, rest, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.TrimSpace(rest) != "q=0" {
			return true
		}
	}
	return false
}

// A wireOut writes frames to a browser.
type wireOut struct {
	to      http.ResponseWriter
	control *http.ResponseController
	pack    *packer
	gzip    bool
}

// begin writes the header. The server's timeouts are for short requests; here each frame has one.
func (o *wireOut) begin(gzip bool) {
	o.gzip = gzip
	h := o.to.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	if gzip {
		h.Set("Content-Encoding", "gzip")
	}
	// If a server keeps its timeouts, it ends the stream, and the page reconnects.
	_ = o.control.SetReadDeadline(time.Time{})
	_ = o.control.SetWriteDeadline(time.Now().Add(writePatience))
	o.to.WriteHeader(http.StatusOK)
	if gzip {
		_, _ = io.WriteString(o.to, gzipHeader) // the next write reports a closed connection
	}
	_ = o.control.Flush()
}

func (o *wireOut) write(f *frame) error {
	data := f.plain
	if o.gzip {
		data = func() []byte { return f.compressed(o.pack) }
	}
	for piece := range slices.Chunk(data(), writeAtOnce) {
		_ = o.control.SetWriteDeadline(time.Now().Add(writePatience))
		if _, err := o.to.Write(piece); err != nil {
			return err
		}
	}
	return o.control.Flush()
}

// A frame is one server-sent event. It is encoded and compressed once, and shared by all viewers.
type frame struct {
	id    string
	event string
	body  func() any // called at most once

	once sync.Once
	text []byte

	packing sync.Once
	packed  []byte
}

func (f *frame) plain() []byte {
	f.once.Do(func() {
		data, err := json.Marshal(f.body())
		if err != nil {
			panic(err) // documents contain only numbers, strings and structs
		}
		f.body = nil // it may refer to a whole table
		f.text = fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", f.id, f.event, data)
	})
	return f.text
}

// gzipHeader is a gzip header without optional fields (RFC 1952).
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// compressed returns the frame as a part of a gzip stream after gzipHeader. It contains no back
// references, so it fits into any stream.
func (f *frame) compressed(p *packer) []byte {
	plain := f.plain()
	f.packing.Do(func() { f.packed = p.pack(plain) })
	return f.packed
}

// A packer compresses one thing at a time: its tables are large.
type packer struct {
	mu     sync.Mutex
	out    bytes.Buffer
	writer *flate.Writer // created on demand
}

// pack compresses to blocks that end at a byte boundary, and are not the last of a stream.
func (p *packer) pack(plain []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Reset()
	if p.writer == nil {
		var err error
		if p.writer, err = flate.NewWriter(&p.out, flate.BestSpeed); err != nil {
			panic(err) // the level is valid
		}
	} else {
		p.writer.Reset(&p.out)
	}
	// Writes to memory do not fail.
	_, _ = p.writer.Write(plain)
	_ = p.writer.Flush()
	return bytes.Clone(p.out.Bytes())
}
