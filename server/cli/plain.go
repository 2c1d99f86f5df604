package cli

import (
	"fmt"
	"log/slog"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
)

// InsecureFlag is how somebody says that a network can be trusted.
const InsecureFlag = "insecure"

// insecureUsage is what it is for, for all commands that have it.
const insecureUsage = "speak plain text with other computers, too: in a network where nobody can\nread along or answer in another's place, and everybody may do everything"

// A Contact is an address that a command listens on, or calls.
type Contact struct {
	flag    string // where it is from
	addr    string
	secured bool // nobody can read along
}

// ContactAt is an address that was set by a flag.
func ContactAt(flag, addr string, secured bool) Contact { return Contact{flag, addr, secured} }

// plainText decides whether an address may be used: it may if it is secured, if it is on
// this computer, or if somebody has said that the network can be trusted. In the last case
// there is something to warn of.
func plainText(c Contact, insecure bool) (warn bool, err error) {
	switch {
	case c.secured || address.Loopback(c.addr):
		return false, nil
	case insecure:
		return true, nil
	}
	return false, fmt.Errorf("%s %s: others than this computer are there, or may be, and all would be in plain text, for anybody to read and to change: say with --tls-dir where certificates are, use the loopback, or say --%s if the network can be trusted",
		c.flag, c.addr, InsecureFlag)
}

// plainTexts decides about all addresses of a command. It returns those to warn of.
func plainTexts(contacts []Contact, insecure bool) (open []string, err error) {
	for _, c := range contacts {
		warn, err := plainText(c, insecure)
		if err != nil {
			return nil, err
		}
		if warn {
			open = append(open, c.addr)
		}
	}
	return open, nil
}

// Called are the contacts to managers that a flag lists.
func Called(flag string, managers []string, secured bool) []Contact {
	contacts := make([]Contact, len(managers))
	for i, addr := range managers {
		contacts[i] = Contact{flag, addr, secured}
	}
	return contacts
}

// WarnOfPlainText tells the log, once, what is in plain text.
func WarnOfPlainText(open []string, log *slog.Logger) {
	if len(open) > 0 {
		log.Warn("speaking plain text with other computers, because of --"+InsecureFlag+": whoever can read along or answer in another's place can own keys", "addresses", strings.Join(open, ", "))
	}
}

// plainCredentials are for connections that are not secured: to this computer only, unless
// the network can be trusted.
func plainCredentials(trusted bool) credentials.TransportCredentials {
	if trusted {
		return insecure.NewCredentials()
	}
	return managerconn.Plaintext()
}
