// Presence stores the status of every user in memory, on the server that owns the user.
package main

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: presence HOST:PORT MANAGER,...")
	}
	self, managers := os.Args[1], strings.Split(os.Args[2], ",")
	listener, err := net.Listen("tcp", self) // before joining: an owner must be able to serve
	check(err)
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	as := owner.Config{Namespace: "presence", Managers: managers, Addr: self, Logger: slog.Default()}
	statuses, err := leasemap.Join(ctx, as, leasemap.Config[string]{})
	check(err)
	server := &http.Server{Handler: serve(statuses), ReadHeaderTimeout: 5 * time.Second}
	go func() { check(server.Serve(listener)) }()
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	check(statuses.Close(closing)) // transfers them to other servers
}

func serve(statuses *leasemap.Map[string]) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /status/{user}", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1000))
		if err == nil {
			_, err = statuses.Set(r.Context(), r.PathValue("user"), string(text))
		}
		leasehttp.WriteError(w, err)
	})
	mux.HandleFunc("GET /status/{user}", func(w http.ResponseWriter, r *http.Request) {
		text, _, err := statuses.Get(r.PathValue("user"))
		if leasehttp.WriteError(w, err) {
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, text)
	})
	return mux
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
