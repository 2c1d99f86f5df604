// Tutorial counts: each counter is in the memory of the server that owns its name. docs/tutorial.md explains it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// handler serves the counters that this server owns.
func handler(counters *leasemap.Map[int]) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /counters/{name}", func(w http.ResponseWriter, r *http.Request) {
		var count int
		_, err := counters.Update(r.Context(), r.PathValue("name"), func(n *int) error {
			*n++
			count = *n
			return nil
		})
		if !leasehttp.WriteError(w, err) {
			fmt.Fprintln(w, count)
		}
	})
	mux.HandleFunc("GET /counters/{name}", func(w http.ResponseWriter, r *http.Request) {
		count, _, err := counters.Get(r.PathValue("name"))
		if !leasehttp.WriteError(w, err) {
			fmt.Fprintln(w, count)
		}
	})
	return mux
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: tutorial HOST:PORT MANAGER")
	}
	self, manager := os.Args[1], os.Args[2]
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", self)
	check(err)
	counters, err := leasemap.Join(ctx, owner.Config{
		Namespace: "counters", Managers: []string{manager}, Addr: self, Logger: slog.Default(),
	}, leasemap.Config[int]{})
	check(err)
	server := &http.Server{Handler: handler(counters), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()

	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	check(counters.Close(closing)) // moves the counters to other servers; requests are served meanwhile
	check(server.Shutdown(closing))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
