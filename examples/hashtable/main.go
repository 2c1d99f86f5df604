// Hashtable is a hashtable in memory, partitioned over servers, after figure 4 of the
// PRS paper. Every key has one owner at a time. A server that is terminated transfers
// its keys and entries to the others (move.go). If a server is killed, its entries are
// lost and its keys are granted to the others.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// table is one server's part of the hashtable.
type table struct {
	owner   *owner.Owner
	mu      sync.Mutex
	entries map[string]entry
}

// entry is stamped with the generation of the lease under which it was stored.
type entry struct {
	value      string
	generation leasehold.Generation
}

// do runs an operation on the entry of a key. It fails with ErrNotOwner if this server
// does not own the key, and with ErrIndeterminate if it loses the key meanwhile.
func (t *table) do(key string, operation func(*entry)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	lease, ok := t.owner.Check(leasehold.KeyOf(key)) // (1) is this the right server?
	if !ok {
		return leasehold.ErrNotOwner
	}
	e := t.entries[key]
	if e.generation != lease.Generation { // (2) is the entry from this lease?
		e = entry{generation: lease.Generation}
	}
	operation(&e) // (3) operate, and store the result with its stamp
	t.entries[key] = e
	if !t.owner.Held(lease) { // (4) was the lease held throughout?
		return leasehold.ErrIndeterminate
	}
	return nil
}

// dropEntries frees the memory of entries whose lease has ended, and of older ones.
func (t *table) dropEntries(ended []leasehold.Lease, _ leasehold.Cause) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, e := range t.entries {
		for _, l := range ended {
			if l.Range.Contains(leasehold.KeyOf(key)) && e.generation <= l.Generation {
				delete(t.entries, key)
			}
		}
	}
}

// ServeHTTP handles GET /key and PUT /key.
func (t *table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = t.owner.Await(r.Context(), leasehold.KeyOf(r.URL.Path)) // until a transfer of the key to this server is complete
	var value string
	err = t.do(r.URL.Path, func(e *entry) {
		if r.Method == http.MethodPut {
			e.value = string(body)
		}
		value = e.value
	})
	switch {
	case errors.Is(err, leasehold.ErrNotOwner):
		http.Error(w, "not the owner: nothing was done", http.StatusMisdirectedRequest)
	case err != nil:
		http.Error(w, "the key was lost meanwhile: the outcome is unknown", http.StatusServiceUnavailable)
	default:
		_, _ = io.WriteString(w, value) // (5) only now is the result visible
	}
}

// serve is one server, until it is interrupted.
func serve(ctx context.Context, addr string) error {
	listener, err := net.Listen("tcp", addr) // before joining: an owner must be able to serve
	if err != nil {
		return err
	}
	t := &table{entries: map[string]entry{}}
	joining, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	t.owner, err = owner.Join(joining, owner.Config{
		Namespace: "hashtable", Managers: managers(), Addr: addr,
		OnRevoke: t.dropEntries, Mover: t.mover(),
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: t, ReadTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = errors.Join(err, t.owner.Close(closing)) // keys are transferred, and served until then
	return errors.Join(err, server.Close())
}

// call sends a request to the server that owns the key.
func call(ctx context.Context, method, key, value string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	l, err := lookup.Open(ctx, lookup.Config{Namespace: "hashtable", Managers: managers()})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close(context.Background()) }()
	return l.Do(ctx, leasehold.KeyOf("/"+key), func(ctx context.Context, addr string) error {
		r, err := http.NewRequestWithContext(ctx, method, "http://"+addr+"/"+url.PathEscape(key), strings.NewReader(value))
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return leasehold.Errorf("call", leasehold.ErrIndeterminate, addr, "%w", err) // Do retries
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		switch {
		case answer.StatusCode == http.StatusMisdirectedRequest:
			return leasehold.Errorf("call", leasehold.ErrNotOwner, addr, "%s", body) // Do looks up the owner again
		case answer.StatusCode == http.StatusServiceUnavailable:
			return leasehold.Errorf("call", leasehold.ErrIndeterminate, addr, "%s", body) // Do retries
		case answer.StatusCode != http.StatusOK:
			return fmt.Errorf("%s: status %s: %s", addr, answer.Status, body)
		case err != nil:
			return leasehold.Errorf("call", leasehold.ErrIndeterminate, addr, "%w", err)
		}
		fmt.Printf("%s = %s (at %s)\n", key, body, addr)
		return nil
	}, lookup.WithIdempotent())
}

// managers returns the addresses in MANAGERS; the default is this machine.
func managers() []string {
	if list := os.Getenv("MANAGERS"); list != "" {
		return strings.Split(list, ",")
	}
	return []string{"127.0.0.1:7400"}
}

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := errors.New("usage: hashtable serve HOST:PORT | put KEY VALUE | get KEY")
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "serve":
		err = serve(ctx, args[1])
	case len(args) == 3 && args[0] == "put":
		err = call(ctx, http.MethodPut, args[1], args[2])
	case len(args) == 2 && args[0] == "get":
		err = call(ctx, http.MethodGet, args[1], "")
	}
	if err != nil {
		log.Fatal(err)
	}
}
