//go:build linux

package attacks

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// floodVariable is the environment variable that makes this program a flood process.
const floodVariable = "LEASEHOLD_ATTACKS_FLOOD"

// A connFlood is many connections that send the same bytes.
type connFlood struct {
	Addr    string
	Count   int
	TLS     bool          // with a handshake, without a client certificate
	Payload []byte        // sent on each connection
	Pause   time.Duration // between two bytes of Payload; 0: one write
}

// A floodReport is sent by a flood process twice: when all connections are open, and when all
// are closed.
type floodReport struct {
	Connected int
	Refused   int           // closed before all bytes were sent
	Longest   time.Duration // lifetime of a connection
	Over      bool
	Why       string // error
}

// attack opens the connections, in as many processes as necessary, and waits until all are
// closed. It calls up when all are open.
func (c connFlood) attack(t *testing.T, up func()) floodReport {
	t.Helper()
	const reserve = 64 // other files of a process
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	each := min(5000, int(min(limit.Cur, 1<<20))-reserve)
	var parts []*json.Decoder
	for from := 0; from < c.Count; from += each {
		part := c
		part.Count = min(each, c.Count-from)
		parts = append(parts, part.send(t, len(parts)+1))
	}
	var sum floodReport
	for stage := range 2 {
		for _, part := range parts {
			var report floodReport
			if err := part.Decode(&report); err != nil || report.Why != "" || report.Over != (stage == 1) {
				t.Fatalf("a flood process has failed: %+v, %v", report, err)
			}
			if report.Over {
				sum.Connected += report.Connected
				sum.Refused += report.Refused
				sum.Longest = max(sum.Longest, report.Longest)
			}
		}
		if stage == 0 {
			up()
		}
	}
	return sum
}

// send starts a flood process.
func (c connFlood) send(t *testing.T, number int) *json.Decoder {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	copied := func(from io.Reader) error {
		_, err := io.Copy(w, from)
		return errors.Join(err, w.Close())
	}
	launch{name: fmt.Sprintf("flood-%d", number), program: os.Args[0], env: []string{floodVariable + "=" + string(text)}, out: copied}.start(t)
	t.Cleanup(func() { _ = r.Close() }) // before the process is killed
	return json.NewDecoder(bufio.NewReader(r))
}

// runFloodProcess is the main function of a flood process.
func runFloodProcess(text string, _ io.Reader, out io.Writer) int {
	var c connFlood
	report := json.NewEncoder(out)
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		_ = report.Encode(floodReport{Why: err.Error()}) // fails if the parent has ended
		return 1
	}
	if err := c.run(report); err != nil {
		_ = report.Encode(floodReport{Why: err.Error()})
		return 1
	}
	return 0
}

// source returns a loopback address that is unique to this process, so that there are enough
// ports.
func source() net.Addr {
	pid := os.Getpid()
	return &net.TCPAddr{IP: net.IPv4(127, 1, byte(pid>>8), byte(pid)|1)}
}

func (c connFlood) run(report *json.Encoder) error {
	var (
		mu        sync.Mutex
		sum       floodReport
		connected sync.WaitGroup
		over      sync.WaitGroup
		places    = make(chan struct{}, 64) // concurrent connection attempts
		dialer    = net.Dialer{LocalAddr: source(), Timeout: 10 * time.Second}
	)
	for range c.Count {
		places <- struct{}{}
		connected.Add(1)
		over.Go(func() {
			conn, err := dialer.Dial("tcp", c.Addr)
			<-places
			connected.Done()
			began := time.Now()
			mu.Lock()
			if err != nil {
				sum.Why = err.Error()
			} else {
				sum.Connected++
			}
			mu.Unlock()
			if err != nil {
				return
			}
			refused := c.writeAll(conn)
			_, _ = io.Copy(io.Discard, conn) // until it is closed
			_ = conn.Close()
			mu.Lock()
			defer mu.Unlock()
			sum.Longest = max(sum.Longest, time.Since(began))
			if refused {
				sum.Refused++
			}
		})
	}
	connected.Wait()
	mu.Lock()
	err := report.Encode(sum)
	mu.Unlock()
	if err != nil {
		return err
	}
	over.Wait()
	sum.Over = true
	return report.Encode(sum)
}

// writeAll sends the bytes of a connection, and reports whether the peer closed it before the end.
func (c connFlood) writeAll(conn net.Conn) bool {
	if c.TLS {
		secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if secured.Handshake() != nil {
			return true
		}
		conn = secured
	}
	if c.Pause == 0 {
		_, err := conn.Write(c.Payload)
		return err != nil
	}
	for _, b := range c.Payload {
		if _, err := conn.Write([]byte{b}); err != nil {
			return true
		}
		time.Sleep(c.Pause)
	}
	return false
}
