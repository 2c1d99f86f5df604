package secure

import (
	"context"
	"crypto/tls"
	"net"
)

// A ClientAuth is how a server treats its clients' certificates.
type ClientAuth int

const (
	// IfGiven verifies a certificate if the client has one, for servers that also accept
	// bearer tokens.
	IfGiven ClientAuth = iota

	// Required rejects clients without a certificate, for internal services.
	Required

	// Unasked requests no certificate, for public servers: browsers would prompt their
	// user for one.
	Unasked
)

func (a ClientAuth) tls() tls.ClientAuthType {
	switch a {
	case IfGiven:
		return tls.VerifyClientCertIfGiven
	case Unasked:
		return tls.NoClientCert
	default:
		return tls.RequireAndVerifyClientCert
	}
}

// ClientTLS returns a config for clients, such as those of net/http and etcd. Each
// handshake uses the current files. The server must have one of the identities in servers
// or, without arguments, in Config.Servers; if both are empty, its certificate must have
// the dialled host name.
//
// crypto/tls passes names to the verification, but not IP addresses: a client that dials
// addresses and has no Servers needs [Keeper.DialTLS].
func (k *Keeper) ClientTLS(servers ...Identity) *tls.Config {
	return k.clientTLS("", k.serversOr(servers))
}

func (k *Keeper) serversOr(servers []Identity) []Identity {
	if len(servers) > 0 {
		return servers
	}
	return k.cfg.Servers
}

// clientTLS returns a config for one host, or for the server name of the handshake if the
// host is "".
func (k *Keeper) clientTLS(host string, servers []Identity) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: host,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if m := k.now.Load(); m.cert != nil {
				return m.cert, nil
			}
			return &tls.Certificate{}, nil // none
		},
		// VerifyConnection verifies everything with the current roots. Without a session
		// cache, it verifies every connection.
		InsecureSkipVerify: true, // #nosec G402 -- see above
		VerifyConnection: func(state tls.ConnectionState) error {
			if host == "" {
				return k.verifyServer(&state, state.ServerName, servers)
			}
			return k.verifyServer(&state, host, servers)
		},
	}
}

// DialTLS connects to a name or an address and performs the handshake, for DialTLSContext
// of http.Transport. It verifies the server like ClientTLS.
func (k *Keeper) DialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := tls.Dialer{Config: k.clientTLS(hostOf(addr), k.cfg.Servers)}
	return dialer.DialContext(ctx, network, addr)
}

// ServerTLS returns a config for servers. Each handshake uses the current files. If clients
// is not empty, every client must have a certificate with one of these identities.
//
// It offers HTTP/2 and HTTP/1.1. For other protocols, set NextProtos of the returned config
// before it is used or copied.
func (k *Keeper) ServerTLS(auth ClientAuth, clients ...Identity) *tls.Config {
	if len(clients) > 0 {
		auth = Required
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true}
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		m := k.now.Load()
		own, err := m.serverCert()
		if err != nil {
			return nil, err
		}
		return &tls.Config{
			MinVersion:   tls.VersionTLS13,
			NextProtos:   c.NextProtos,
			Certificates: []tls.Certificate{*own},
			ClientAuth:   auth.tls(),
			ClientCAs:    m.pool,
			// A resumed session would not be verified against the current roots and lists.
			SessionTicketsDisabled: true,
			VerifyConnection: func(state tls.ConnectionState) error {
				return m.verifyClient(&state, clients)
			},
		}, nil
	}
	// net/http requires a certificate before it serves.
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.now.Load().serverCert() }
	return c
}
