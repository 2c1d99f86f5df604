// Presence keeps what every user last said, in memory, on the server that owns the user.
package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

func main() { // presence ADDR MANAGERS
	self, managers := os.Args[1], strings.Split(os.Args[2], ",")
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	statuses, err := leasemap.Join(ctx, owner.Config{Namespace: "presence", Managers: managers, Addr: self}, leasemap.Config[string]{})
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.ListenAndServe(self, serve(statuses))) }()
	<-ctx.Done()
	if err := statuses.Close(context.Background()); err != nil { // they go to other servers
		log.Fatal(err)
	}
}

func serve(statuses *leasemap.Map[string]) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /status/{user}", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1000))
		if err == nil {
			_, err = statuses.Set(r.Context(), r.PathValue("user"), string(text))
		}
		if err != nil {
			leasehttp.Error(w, err)
		}
	})
	mux.HandleFunc("GET /status/{user}", func(w http.ResponseWriter, r *http.Request) {
		text, _, err := statuses.Get(r.PathValue("user"))
		if err != nil {
			leasehttp.Error(w, err)
			return
		}
		_, _ = io.WriteString(w, text)
	})
	return mux
}
