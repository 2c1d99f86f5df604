package pki

import (
	"fmt"
	"strings"
)

const policyHead = `# Who may do what; everybody else may do nothing. "leasehold pki init" wrote this
# for the certificates that it made. It is yours now: it is read again when it
# changes.
#
# {name} stands for an owner's name: whoever has the certificate of an owner may
# use that name and no other. Managers and operators are named one by one.
rules:
`

// Policy is the text of an access policy that permits these parties what their
// roles say: owners of a namespace all, by their names, and the others exactly.
func Policy(domain string, parties []Party) string {
	var text strings.Builder
	text.WriteString(policyHead)
	seen := make(map[string]bool)
	for _, p := range parties {
		if rule := Rule(domain, p); !seen[rule] {
			seen[rule] = true
			text.WriteString(rule)
		}
	}
	return text.String()
}

// Rule is the rule that permits one party what its role says.
func Rule(domain string, p Party) string {
	namespaces := "*"
	if p.namespaced() {
		namespaces = string(p.Namespace)
	}
	if p.Role == Owner {
		p.Name = "{name}"
	}
	// Quoted, since a namespace may be called 1.0 or null.
	return fmt.Sprintf("  - identity: %q\n    role: %s\n    namespaces: [%q]\n", p.Identity(domain), p.Role, namespaces)
}
