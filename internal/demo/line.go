package demo

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A line is one connection to one server, over which many ask at once. The server
// answers in the order in which it was asked. So a question costs a few bytes,
// and nothing has to be told apart.
//
// It may be used from many goroutines at once, also before it is connected. A line
// that has failed fails for all who wait for an answer, and is of no use any more.
type line struct {
	addr string
	wake chan struct{} // there is something to be sent; closed at the end

	mu      sync.Mutex
	conn    net.Conn // nil until it is connected
	out     []byte   // what is to be sent
	waiting []waiter // for answers, the first one first; maxWaiters at most
	err     error    // why it has failed; nil while it has not
}

func newLine(addr string) *line { return &line{addr: addr, wake: make(chan struct{}, 1)} }

// A waiter is told the answer to a question, or why there is none.
type waiter struct {
	size  int // of the words of the answer
	since time.Time
	heard func(words []byte, err error)
}

// maxWaiters is more than there are keys that are asked about.
const maxWaiters = 2 * maxProbed

// send asks about some keys, maxWords at most, and returns at once. Heard is
// called once, by the line's goroutine: in turn, with a number for each key or
// with an error, after attemptPatience at the latest. It must be quick, and must
// not keep the numbers. After an error it is not called.
func (l *line) send(keys []leasehold.Key, heard func(words []byte, err error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if len(l.waiting) == maxWaiters {
		return l.failure("%d questions wait for an answer", maxWaiters)
	}
	l.waiting = append(l.waiting, waiter{wordSize * len(keys), time.Now(), heard})
	l.out = appendHead(l.out, len(keys))
	for _, key := range keys {
		l.out = appendWord(l.out, uint64(key))
	}
	if len(l.waiting) == 1 {
		l.expect()
	}
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
	return nil
}

// ask asks about one key. The answer is the number of its status, or declined.
func (l *line) ask(ctx context.Context, key leasehold.Key) (uint64, error) {
	type answer struct {
		number uint64
		err    error
	}
	answers := make(chan answer, 1)
	err := l.send([]leasehold.Key{key}, func(words []byte, err error) {
		if err != nil {
			answers <- answer{0, err}
			return
		}
		answers <- answer{wordAt(words, 0), nil}
	})
	if err != nil {
		return 0, err
	}
	select {
	case a := <-answers:
		return a.number, a.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// run connects the line and passes questions and answers on until it fails, or is
// hung up. Who still waits then is told after the line is dropped, and so may
// begin another.
func (l *line) run(connect func() (net.Conn, error), drop func()) {
	var writing sync.WaitGroup
	conn, err := connect()
	if err == nil {
		if err = l.begin(conn); err == nil {
			writing.Go(func() { l.write(conn) })
			err = l.listen(newFrameReader(conn))
		}
		_ = conn.Close() // there is nothing left to be said
	}
	left, err := l.fail(err)
	writing.Wait()
	drop()
	for _, w := range left {
		w.heard(nil, err)
	}
}

// begin takes up the connection.
func (l *line) begin(conn net.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	l.expect()
	return l.err
}

// write sends questions. Those that come while others are sent go together.
func (l *line) write(conn net.Conn) {
	var out []byte
	for range l.wake {
		l.mu.Lock()
		out, l.out = l.out, out[:0]
		l.mu.Unlock()
		if len(out) == 0 {
			continue // it went with those before
		}
		if _, err := conn.Write(out); err != nil {
			l.fault(err)
		}
	}
}

// expect has the connection fail if the first who waits does so for too long. It
// is called with the lock held.
func (l *line) expect() {
	if l.conn == nil {
		return
	}
	var until time.Time
	if len(l.waiting) > 0 {
		until = l.waiting[0].since.Add(attemptPatience)
	}
	_ = l.conn.SetDeadline(until) // a connection that is closed needs none
}

// listen passes answers on.
func (l *line) listen(in *bufio.Reader) error {
	for {
		size, err := awaitFrame(in)
		if err != nil {
			return err
		}
		words, err := takeFrame(in, size)
		if err != nil {
			return err
		}
		w, err := l.next(len(words))
		if err != nil {
			return err
		}
		w.heard(words, nil)
	}
}

// next returns who waits for an answer of a size.
func (l *line) next(size int) (waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 || l.waiting[0].size != size {
		return waiter{}, errors.New("it answered what nobody has asked")
	}
	w := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	l.expect()
	return w, nil
}

// hangUp has the line fail.
func (l *line) hangUp() { l.fault(errors.New("it was hung up")) }

// fault has the line fail, if it has not already: whoever listens hears of that.
func (l *line) fault(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = l.failure("%w", err)
	}
	if l.conn != nil {
		_ = l.conn.Close() // there is nothing left to be said
	}
}

// fail returns those who still wait, and what to tell them: what went wrong first.
// From now on nobody can send. It is called once.
func (l *line) fail(err error) ([]waiter, error) {
	l.fault(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.wake)
	left := l.waiting
	l.waiting = nil
	return left, l.err
}

// failure is an error after which a caller may try again.
func (l *line) failure(format string, args ...any) error {
	return leasehold.Errorf("ask", leasehold.Unavailable, l.addr, format, args...)
}
