package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// lines has one line to each server that is asked. It may be used from many
// goroutines at once.
type lines struct {
	dial dialer

	ctx     context.Context // ends all lines
	cancel  context.CancelFunc
	running sync.WaitGroup // one goroutine for each line

	mu   sync.Mutex
	open map[string]*line // that have not failed; maxLines at most
}

// A dialer connects to an address.
type dialer func(ctx context.Context, addr string) (net.Conn, error)

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// maxLines is how many lines a caller has, and how many a server serves. A server
// that restarts listens elsewhere, and the line to where it was may end later.
const maxLines = 2 * maxProcs

// newLines returns lines that end with the context.
func newLines(ctx context.Context, dial dialer) *lines {
	ctx, cancel := context.WithCancel(ctx)
	return &lines{dial: dial, ctx: ctx, cancel: cancel, open: make(map[string]*line)}
}

// close ends all lines, and returns when they have.
func (ls *lines) close() {
	ls.mu.Lock()
	ls.cancel()
	ls.mu.Unlock()
	ls.running.Wait()
}

// to returns the line to a server. If there is none it begins one, and returns
// before that is connected: it can be used at once.
func (ls *lines) to(addr string) (*line, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.open[addr]; l != nil {
		return l, nil
	}
	l := newLine(addr)
	switch {
	case ls.ctx.Err() != nil:
		return nil, l.failure("the lines are closed")
	case len(ls.open) == maxLines:
		return nil, l.failure("there are %d lines already", maxLines)
	}
	ls.open[addr] = l
	ls.running.Go(func() {
		stop := context.AfterFunc(ls.ctx, l.hangUp)
		defer stop()
		l.run(func() (net.Conn, error) { return ls.connect(addr) }, func() { ls.drop(l) })
	})
	return l, nil
}

// drop forgets a line that has failed.
func (ls *lines) drop(l *line) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.open[l.addr] == l {
		delete(ls.open, l.addr)
	}
}

// lineProtocol is what an HTTP connection is upgraded to.
const lineProtocol = "presence-line"

// connect connects to a server, and asks it for a line.
func (ls *lines) connect(addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ls.ctx, attemptPatience)
	defer cancel()
	conn, err := ls.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // whoever waits for it hears of that
	defer stop()
	if err := upgrade(conn, addr); err != nil {
		_ = conn.Close() // there is nothing left to be said
		return nil, err
	}
	return conn, nil
}

// upgrade asks for a line. It may read more than the answer, if there is more; but
// a server says nothing that it was not asked.
func upgrade(conn net.Conn, addr string) error {
	request, err := http.NewRequest(http.MethodGet, "http://"+addr+"/presence", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", lineProtocol)
	if err := request.Write(conn); err != nil {
		return err
	}
	in := bufio.NewReader(io.LimitReader(conn, maxBodySize))
	response, err := http.ReadResponse(in, request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Upgrade") != lineProtocol || in.Buffered() > 0 {
		return fmt.Errorf("it was asked for a line and answered %s", response.Status)
	}
	return nil
}
