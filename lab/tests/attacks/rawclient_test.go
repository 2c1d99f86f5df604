//go:build linux

package attacks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// A rawClient writes single HTTP/2 frames, valid or not.
type rawClient struct {
	*http2.Framer
	t        *testing.T
	conn     net.Conn
	out      *bufio.Writer
	block    bytes.Buffer // encoded headers
	encoder  *hpack.Encoder
	writeErr error // the first error of a write
}

// newRawClient returns a client that has sent nothing yet.
func newRawClient(t *testing.T, conn net.Conn) *rawClient {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(eventTimeout)); err != nil {
		t.Fatal(err)
	}
	r := &rawClient{t: t, conn: conn, out: bufio.NewWriterSize(conn, 64<<10)}
	r.Framer = http2.NewFramer(r, conn)
	r.AllowIllegalWrites = true
	r.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	r.encoder = hpack.NewEncoder(&r.block)
	return r
}

// Write writes into the buffer. It ignores errors: outcome reads the reason that the server
// sent.
func (r *rawClient) Write(p []byte) (int, error) {
	if r.writeErr == nil {
		_, r.writeErr = r.out.Write(p)
	}
	return len(p), nil
}

func (r *rawClient) flush() {
	if r.writeErr == nil {
		r.writeErr = r.out.Flush()
	}
}

// sendPreface sends a valid preface and settings.
func (r *rawClient) sendPreface() {
	_, _ = r.Write([]byte(http2.ClientPreface))
	_ = r.WriteSettings()
}

// fields are headers in order: name, value, name, value.
type fields []string

// head returns the headers of a gRPC call, and more.
func head(method string, more ...string) fields {
	return append(fields{":method", "POST", ":scheme", "http", ":path", method, ":authority", "manager", "content-type", "application/grpc", "te", "trailers"}, more...)
}

// encodeHeaders returns headers in HPACK.
func (r *rawClient) encodeHeaders(f fields) []byte {
	r.block.Reset()
	for i := 0; i < len(f); i += 2 {
		_ = r.encoder.WriteField(hpack.HeaderField{Name: f[i], Value: f[i+1]}) // a buffer never fails
	}
	return bytes.Clone(r.block.Bytes())
}

// open opens a stream.
func (r *rawClient) open(stream uint32, f fields) {
	_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: r.encodeHeaders(f), EndHeaders: true})
}

// message returns a gRPC message with a length field that need not match.
func message(compressed byte, length int, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{compressed}, uint32(length)), body...)
}

// sendMessage sends a message in one frame.
func (r *rawClient) sendMessage(stream uint32, body []byte) {
	_ = r.WriteData(stream, false, message(0, len(body), body))
}

// outcome reads until a stream has a status or a reset, or the connection a GOAWAY or its end.
func (r *rawClient) outcome(stream uint32) string {
	r.flush()
	goaway := ""
	for {
		f, err := r.ReadFrame()
		var broken http2.StreamError
		switch {
		case errors.As(err, &broken):
			continue // oversized headers from the server
		case err != nil && goaway != "":
			return goaway
		case err != nil:
			return r.ending(err)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			if status := statusOf(f); status != "" && f.StreamID == stream {
				return status
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == stream {
				return "reset " + f.ErrCode.String()
			}
		case *http2.GoAwayFrame:
			if goaway = fmt.Sprintf("goaway %v %s", f.ErrCode, f.DebugData()); f.ErrCode != http2.ErrCodeNo {
				return goaway
			}
		}
	}
}

func (r *rawClient) ending(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		r.t.Fatalf("no outcome within %v", eventTimeout)
	}
	return "closed"
}

// statusOf returns the status in headers, "" if the call continues.
func statusOf(f *http2.MetaHeadersFrame) string {
	var code, text, http string
	for _, h := range f.Fields {
		switch h.Name {
		case "grpc-status":
			code = h.Value
		case "grpc-message":
			text, _ = url.PathUnescape(h.Value)
		case ":status":
			http = h.Value
		}
	}
	switch {
	case code == "" && http != "200":
		return "http " + http
	case code == "":
		return ""
	}
	return "status " + code + " " + text
}

// send sends a protobuf message.
func (r *rawClient) send(stream uint32, m proto.Message) {
	body, err := proto.Marshal(m)
	if err != nil {
		r.t.Fatal(err)
	}
	r.sendFragmented(stream, body)
}

// sendFragmented sends a message in as many frames as necessary.
func (r *rawClient) sendFragmented(stream uint32, body []byte) {
	rest := message(0, len(body), body)
	for len(rest) > 0 {
		n := min(len(rest), 16<<10)
		_ = r.WriteData(stream, false, rest[:n])
		rest = rest[n:]
	}
}

// bomb sends 8 MiB of zeros as a few compressed kilobytes.
func (r *rawClient) bomb(stream uint32) {
	var encodeHeaders bytes.Buffer
	z := gzip.NewWriter(&encodeHeaders)
	for range 8 {
		_, _ = z.Write(make([]byte, 1<<20)) // a buffer never fails
	}
	_ = z.Close()
	_ = r.WriteData(stream, true, message(1, encodeHeaders.Len(), encodeHeaders.Bytes()))
}
