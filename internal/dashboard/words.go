package dashboard

import "strings"

// enumText is a name of the protocol in words: what is after its prefix. A value of a
// newer peer is its number.
func enumText(name, prefix string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, prefix), "_", " "))
}
