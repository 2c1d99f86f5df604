package leaseholdtest

import (
	"context"
	"net/http"
	"time"
)

// Serve serves HTTP at the node's Addr, until the node ends.
func (n *Node) Serve(handler http.Handler) {
	n.cluster.t.Helper()
	listener := n.Listen(Port)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it ends with the node, one way or another
	}()
	n.Cleanup(func(context.Context) {
		_ = server.Close()
		<-ended
	})
}

// Client returns an HTTP client on this node, for addresses in the cluster's network.
// It gives up after ten seconds.
func (n *Node) Client() *http.Client {
	transport := &http.Transport{DialContext: n.DialContext}
	n.Cleanup(func(context.Context) { transport.CloseIdleConnections() })
	return &http.Client{Transport: transport, Timeout: within}
}
