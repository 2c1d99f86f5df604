package secure

import (
	"context"
	"crypto/tls"
	"net"
)

// A ClientAuth says what a server wants of its clients' certificates. A
// certificate that is given is always verified, but by [Unasked].
type ClientAuth int

const (
	// IfGiven verifies a certificate if the client has one: for servers where
	// others show a bearer token.
	IfGiven ClientAuth = iota

	// Required refuses whoever has no certificate: for services among ourselves.
	Required

	// Unasked asks for no certificate: for the public, with browsers that would
	// ask their user for one.
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

// ClientTLS returns a config for clients, such as that of net/http and etcd. Each
// handshake goes by the files of its time. A server must be one of servers, or
// of Config.Servers if none are given here, or else have the host name dialled.
//
// crypto/tls does not tell us an address that was dialled, only a name: a client
// that dials addresses and has no Servers needs [Keeper.DialTLS].
func (k *Keeper) ClientTLS(servers ...Identity) *tls.Config {
	return k.clientTLS("", k.serversOr(servers))
}

func (k *Keeper) serversOr(servers []Identity) []Identity {
	if len(servers) > 0 {
		return servers
	}
	return k.cfg.Servers
}

// clientTLS is for one host, or for the one that the handshake tells if that is "".
func (k *Keeper) clientTLS(host string, servers []Identity) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: host,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if m := k.now.Load(); m.cert != nil {
				return m.cert, nil
			}
			return &tls.Certificate{}, nil // none to show
		},
		// VerifyConnection does all of it, with the roots of now. There is no
		// session cache, so that every connection is verified from the start.
		InsecureSkipVerify: true, // #nosec G402 -- see above
		VerifyConnection: func(state tls.ConnectionState) error {
			if host == "" {
				return k.verifyServer(&state, state.ServerName, servers)
			}
			return k.verifyServer(&state, host, servers)
		},
	}
}

// DialTLS connects to an address and shakes hands, within ctx. It is made for
// http.Transport's DialTLSContext; servers are expected as with ClientTLS, and
// addresses can be dialled as well as names.
func (k *Keeper) DialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := tls.Dialer{Config: k.clientTLS(hostOf(addr), k.cfg.Servers)}
	return dialer.DialContext(ctx, network, addr)
}

// ServerTLS returns a config for servers. Each handshake goes by the files of
// its time. If clients are given, whoever connects must have a certificate with
// one of these identities.
//
// It offers HTTP/2 and HTTP/1.1. Whoever serves something else sets NextProtos
// of the config that is returned, before it is used or copied.
func (k *Keeper) ServerTLS(auth ClientAuth, clients ...Identity) *tls.Config {
	if len(clients) > 0 {
		auth = Required
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true}
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		m := k.now.Load()
		own, err := m.own()
		if err != nil {
			return nil, err
		}
		return &tls.Config{
			MinVersion:   tls.VersionTLS13,
			NextProtos:   c.NextProtos,
			Certificates: []tls.Certificate{*own},
			ClientAuth:   auth.tls(),
			ClientCAs:    m.pool,
			// A session that is resumed would be one that today's roots and
			// lists have not verified.
			SessionTicketsDisabled: true,
			VerifyConnection: func(state tls.ConnectionState) error {
				return m.verifyClient(&state, clients)
			},
		}, nil
	}
	// net/http asks for a certificate before it serves.
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.now.Load().own() }
	return c
}
