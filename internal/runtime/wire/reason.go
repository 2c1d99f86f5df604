package wire

import (
	"regexp"
	"strconv"
	"strings"
)

// Causes of a failed connection that have their own advice. An error text contains them.
const (
	RequiresTLS  = "the server closed the plaintext connection; it may require TLS and certificates"
	NoTLS        = "the manager uses plaintext, but this client uses TLS"
	PerhapsNoTLS = "the server closed the connection during the TLS handshake, as servers that use plaintext do"
)

// position is the prefix of net.OpError, with addresses that the message has already.
var position = regexp.MustCompile(`(dial|read|write) (tcp|unix)( [^ ]+)?: ((connect|read|write): )?`)

// reason returns gRPC's text for a failed connection without gRPC's terms, and other texts unchanged.
func reason(text string) string {
	if why, broken := strings.CutPrefix(text, "error reading from server: "); broken {
		return "the connection broke: " + position.ReplaceAllString(why, "")
	}
	quoted, failed := strings.CutPrefix(text, "connection error: desc = ")
	inner, err := strconv.Unquote(quoted)
	if !failed || err != nil {
		return text
	}
	inner = position.ReplaceAllString(inner, "")
	inner, handshake := strings.CutPrefix(inner, "transport: authentication handshake failed: ")
	inner, preface := strings.CutPrefix(inner, "error reading server preface: ")
	closed := inner == "EOF" || inner == "connection reset by peer"
	switch {
	case handshake && strings.Contains(inner, "first record does not look like a TLS handshake"):
		return NoTLS
	case handshake && closed:
		return PerhapsNoTLS
	case preface && closed, strings.Contains(inner, RequiresTLS):
		return RequiresTLS
	}
	return strings.TrimPrefix(inner, "transport: Error while dialing: ")
}
