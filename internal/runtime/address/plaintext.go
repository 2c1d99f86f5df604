package address

import (
	"errors"
	"net"
)

// Remedy is the part of an error message that names the fields to set.
func Remedy(fields string) string {
	return "set " + fields + ", from package secure, or to insecure.NewCredentials() if the network can be trusted"
}

// CheckPlaintext rejects addresses that are not on the loopback interface. A plaintext connection to
// another host would let an attacker impersonate an owner, or a spoofed manager create dual ownership.
func CheckPlaintext(addrs ...string) error {
	for _, addr := range addrs {
		if !Loopback(addr) {
			return errors.New(addr + " is not a loopback address, and the connection would be plaintext: " + Remedy("Credentials"))
		}
	}
	return nil
}

// CheckPlaintextListener rejects a TCP listener that is not on the loopback interface. Other
// listeners pass: Unix sockets and in-memory networks. The fields are the configuration fields for
// credentials.
func CheckPlaintextListener(l net.Listener, fields string) error {
	if at, ok := l.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() {
		return errors.New(at.String() + " is not a loopback address, and connections would be plaintext: " + Remedy(fields))
	}
	return nil
}
