package cluster_test

import (
	"context"
	"log"
	"net/http"

	"github.com/leasehold-dev/leasehold/cluster"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// Three of these servers are a cluster: see examples/cluster.
func Example() {
	ctx := context.Background() // until the server is stopped
	var state leasemap.Group
	statuses := leasemap.Add(&state, "", leasemap.Config[string]{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := statuses.Set(r.Context(), r.FormValue("user"), r.FormValue("status"))
		leasehttp.WriteError(w, err)
	})
	c, err := cluster.Join(ctx, cluster.Config{
		Namespace: "presence",
		Self:      "10.0.1.7:7400",
		Peers:     cluster.List("10.0.1.7:7400", "10.0.1.8:7400", "10.0.1.9:7400"),
		State:     &state,
		Handler:   handler,
		Route:     leasehttp.Query("user"),
	})
	if err != nil {
		log.Print(err) // without Key and credentials, all names must be on the loopback
		return
	}
	<-c.Done()
}
