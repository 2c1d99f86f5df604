// Cluster is the example presence without managers: three of these servers are a cluster.
package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/cluster"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
)

func main() { // arguments: HOST:PORT of this server, and of all servers
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var state leasemap.Group
	statuses := leasemap.Add(&state, "", leasemap.Config[string]{})
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /status/{user}", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1000))
		if err == nil {
			_, err = statuses.Set(r.Context(), r.PathValue("user"), string(text))
		}
		leasehttp.WriteError(w, err)
	})
	mux.HandleFunc("GET /status/{user}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		text, _, err := statuses.Get(r.PathValue("user"))
		leasehttp.WriteError(w, err)
		_, _ = io.WriteString(w, text)
	})
	c, err := cluster.Join(ctx, cluster.Config{Namespace: "presence", Self: os.Args[1], Peers: cluster.List(os.Args[2:]...),
		State: &state, Handler: mux, Route: leasehttp.PathSegment(2),
		Settings: admin.Namespace{Lease: admin.Seconds(2 * time.Second)}, Longest: 2400 * time.Millisecond}) // a new cluster waits for Longest
	if err != nil {
		log.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-c.Done(): // its manager has failed
		log.Fatal(c.Err())
	}
	if err := c.Close(context.Background()); err != nil { // moves the statuses to the other servers
		log.Fatal(err)
	}
}
