package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// An entry is one write of a leader.
type entry struct {
	Leader uint32 `json:"leader"`
	Number int    `json:"number"`
}

// A store accepts entries of leaders. It rejects a fence lower than the highest it has
// accepted, with errStale.
type store interface {
	write(ctx context.Context, fence uint64, e entry) error
}

var errStale = errors.New("a leader with a higher fence has written")

// A ledger is a store in memory.
type ledger struct {
	mu      sync.Mutex
	fence   uint64 // the highest that was accepted
	entries []entry
}

// maxEntries bounds the ledger; the oldest are dropped.
const maxEntries = 1000

func (l *ledger) write(_ context.Context, fence uint64, e entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fence < l.fence {
		return errStale
	}
	l.fence = fence
	if len(l.entries) == maxEntries {
		l.entries = l.entries[1:]
	}
	l.entries = append(l.entries, e)
	return nil
}

// writeRequest is the body of a write over HTTP.
type writeRequest struct {
	Fence uint64 `json:"fence"`
	Entry entry  `json:"entry"`
}

// ServeHTTP handles a write. The status of a stale one is 409.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var o writeRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := l.write(r.Context(), o.Fence, o.Entry); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	fmt.Printf("fence %d: entry %d of member %d\n", o.Fence, o.Entry.Number, o.Entry.Leader)
}

// serve serves a ledger for other processes, until ctx ends.
func serve(ctx context.Context, addr string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: new(ledger), ReadTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // without draining
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// remote is a ledger in another process.
type remote struct {
	url    string
	client *http.Client
}

func (r remote) write(ctx context.Context, fence uint64, e entry) error {
	body, err := json.Marshal(writeRequest{fence, e})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusConflict:
		return errStale
	}
	return fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(text))
}
