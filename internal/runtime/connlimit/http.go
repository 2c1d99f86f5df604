package connlimit

import (
	"net"
	"net/http"
)

// Serve serves HTTP behind a gate, over TLS if the server has a TLSConfig, until the
// server is closed. It returns what [http.Server.Serve] returns. The server's ConnState is
// called as usual.
//
// The header of a connection's first request must be complete within [Config.Wait]. That
// of the following ones is the business of the server's ReadHeaderTimeout.
func Serve(server *http.Server, listener net.Listener, cfg Config) error {
	next := server.ConnState
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateActive || state == http.StateHijacked {
			introduce(c)
		}
		if next != nil {
			next(c, state)
		}
	}
	gate := open(listener, cfg, true)
	defer gate.Close() //nolint:errcheck // the server has closed it
	if server.TLSConfig != nil {
		return server.ServeTLS(gate, "", "")
	}
	return server.Serve(gate)
}
