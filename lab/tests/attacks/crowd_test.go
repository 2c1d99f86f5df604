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

// crowdVariable tells this program to be a crowd.
const crowdVariable = "LEASEHOLD_SIEGE_CROWD"

// A crowd is many connections that do the same.
type crowd struct {
	Addr  string
	Count int
	TLS   bool          // they shake hands first, and show no certificate
	Say   []byte        // what each says when it is connected
	Slow  time.Duration // between two bytes of that; 0 if it says all at once
}

// A crowdReport is what a part of a crowd tells: once when all are connected, and once when
// all were closed.
type crowdReport struct {
	Connected int
	Refused   int           // it was closed before it had said everything
	Longest   time.Duration // that a connection has lived
	Over      bool
	Why       string // what went wrong
}

// attack sends the crowd, in as many processes as it takes, and waits until all were closed.
// Up is called when all are connected.
func (c crowd) attack(t *testing.T, up func()) crowdReport {
	t.Helper()
	const reserve = 64 // files that a process has anyway
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
	var sum crowdReport
	for stage := range 2 {
		for _, part := range parts {
			var report crowdReport
			if err := part.Decode(&report); err != nil || report.Why != "" || report.Over != (stage == 1) {
				t.Fatalf("a crowd has failed: %+v, %v", report, err)
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

// send starts a process.
func (c crowd) send(t *testing.T, number int) *json.Decoder {
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
	launch{name: fmt.Sprintf("crowd-%d", number), program: os.Args[0], env: []string{crowdVariable + "=" + string(text)}, out: copied}.start(t)
	t.Cleanup(func() { _ = r.Close() }) // before the process is killed; what is left in it is of no interest
	return json.NewDecoder(bufio.NewReader(r))
}

// beCrowd is what such a process does.
func beCrowd(text string, _ io.Reader, out io.Writer) int {
	var c crowd
	report := json.NewEncoder(out)
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		_ = report.Encode(crowdReport{Why: err.Error()}) // or nobody reads it
		return 1
	}
	if err := c.run(report); err != nil {
		_ = report.Encode(crowdReport{Why: err.Error()})
		return 1
	}
	return 0
}

// source is where a process connects from: addresses of the loopback that others do not
// have, so that there are ports enough.
func source() net.Addr {
	pid := os.Getpid()
	return &net.TCPAddr{IP: net.IPv4(127, 1, byte(pid>>8), byte(pid)|1)}
}

func (c crowd) run(report *json.Encoder) error {
	var (
		mu        sync.Mutex
		sum       crowdReport
		connected sync.WaitGroup
		over      sync.WaitGroup
		places    = make(chan struct{}, 64) // that connect at a time
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
			refused := c.speak(conn)
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

// speak says what a connection has to say, and reports whether it was cut short.
func (c crowd) speak(conn net.Conn) bool {
	if c.TLS {
		secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if secured.Handshake() != nil {
			return true
		}
		conn = secured
	}
	if c.Slow == 0 {
		_, err := conn.Write(c.Say)
		return err != nil
	}
	for _, b := range c.Say {
		if _, err := conn.Write([]byte{b}); err != nil {
			return true
		}
		time.Sleep(c.Slow)
	}
	return false
}
