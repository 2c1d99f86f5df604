package wire

import "testing"

// gRPC's terms for a failed connection are removed, other texts are unchanged.
func TestReason(t *testing.T) {
	for text, want := range map[string]string{
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:7492: connect: connection refused"`:                                                         "connection refused",
		`connection error: desc = "transport: Error while dialing: dial tcp [::1]:7492: i/o timeout"`:                                                                             "i/o timeout",
		`connection error: desc = "transport: Error while dialing: lookup m1: no such host"`:                                                                                      "lookup m1: no such host",
		`connection error: desc = "transport: authentication handshake failed: read tcp 127.0.0.1:43616->127.0.0.1:7491: read: connection reset by peer"`:                         PerhapsNoTLS,
		`connection error: desc = "transport: authentication handshake failed: tls: first record does not look like a TLS handshake"`:                                             NoTLS,
		`connection error: desc = "transport: authentication handshake failed: trust peer \"m1\": expired"`:                                                                       `trust peer "m1": expired`,
		`connection error: desc = "error reading server preface: EOF"`:                                                                                                            RequiresTLS,
		`connection error: desc = "error reading server preface: the server rejects the client's certificate: read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer"`: "the server rejects the client's certificate: connection reset by peer",
		`connection error: desc = "error reading server preface: ` + RequiresTLS + `: EOF"`:                                                                                       RequiresTLS,
		`connection error: desc = "transport: Error while dialing: dial tcp: lookup m1 on 127.0.0.1:53: no such host"`:                                                            "lookup m1 on 127.0.0.1:53: no such host",
		"error reading from server: read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer":                                                                            "the connection broke: connection reset by peer",
		`connection error: desc = not quoted`:                "connection error: desc = not quoted",
		"read tcp 1.2.3.4:5: read: connection reset by peer": "read tcp 1.2.3.4:5: read: connection reset by peer",
	} {
		if got := reason(text); got != want {
			t.Errorf("%s\ngives %s\nwant  %s", text, got, want)
		}
	}
}
