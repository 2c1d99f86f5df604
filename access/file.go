package access

import (
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

// Limits on a file, so that a mistake in it cannot exhaust the manager.
const (
	maxFileBytes  = 1 << 20
	maxRules      = 10_000
	maxPatterns   = 1000 // each is compared with the identities of every caller
	maxNamespaces = 4096
	maxNames      = 1000
	maxTokens     = 10_000
)

const anyNamespace = "*"

func parse(file string, text []byte) (*ruleset, error) {
	d := document{file}
	root, err := d.parse(text)
	if err != nil {
		return nil, err
	}
	top, err := d.fields(root, "rules", "tokens")
	if err != nil {
		return nil, err
	}
	if top["rules"] == nil {
		return nil, d.bad(root.Line, "it has no rules and would deny every call")
	}
	b := newRuleset()
	if tokens := top["tokens"]; tokens != nil {
		if err := d.tokens(b, tokens); err != nil {
			return nil, err
		}
	}
	if err := d.rules(b, top["rules"]); err != nil {
		return nil, err
	}
	return b, nil
}

func (d document) rules(b *ruleset, n *yaml.Node) error {
	entries, err := d.list(n, "rules", maxRules)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return d.bad(n.Line, "rules is empty and would deny every call")
	}
	for _, entry := range entries {
		r, err := d.rule(b, entry)
		if err != nil {
			return err
		}
		if before := b.overlapping(r); before != nil {
			return d.bad(r.line, "the rule in line %d gives this identity the same role in one of these namespaces: remove one of the two", before.line)
		}
		if b.add(r); len(b.patterns) > maxPatterns {
			return d.bad(r.line, "more than %d rules have %s in their identities", maxPatterns, nameTemplate)
		}
	}
	return nil
}

func (d document) rule(b *ruleset, n *yaml.Node) (*rule, error) {
	f, err := d.fields(n, "identity", "role", "namespaces", "names")
	if err != nil {
		return nil, err
	}
	for _, required := range []string{"identity", "role", "namespaces"} {
		if f[required] == nil {
			return nil, d.bad(n.Line, "the rule has no %s", required)
		}
	}
	r := &rule{line: n.Line}
	if err := d.role(r, f["role"]); err != nil {
		return nil, err
	}
	if err := d.identity(b, r, f["identity"]); err != nil {
		return nil, err
	}
	if err := d.namespaces(r, f["namespaces"]); err != nil {
		return nil, err
	}
	return r, d.names(r, f["names"])
}

func (d document) role(r *rule, n *yaml.Node) error {
	text, err := d.text(n, "role")
	if err != nil {
		return err
	}
	if r.role = role(text); !slices.Contains(roles(), r.role) {
		return d.bad(n.Line, "there is no role %q: want owner, lookup, manager or operator", clip(text))
	}
	return nil
}

// identity parses the identity of a rule whose role is set.
func (d document) identity(b *ruleset, r *rule, n *yaml.Node) error {
	text, err := d.text(n, "identity")
	if err != nil {
		return err
	}
	r.identity = secure.Identity(text)
	if name, isToken := tokenName(r.identity); isToken {
		switch {
		case r.role != roleLookup && r.role != roleOperator:
			return d.bad(n.Line, "a token cannot be %s: its role must be lookup or operator", r.role)
		case b.tokens[name] == nil:
			return d.bad(n.Line, "there is no token %q under tokens", clip(name))
		}
		return nil
	}
	if err := r.identity.Validate(); err != nil {
		return d.bad(n.Line, "%w", err)
	}
	if isPattern(r.identity) {
		if r.role != roleOwner {
			return d.bad(n.Line, "%s stands for an owner's name and cannot be used with the role %s: write one rule for each identity", nameTemplate, r.role)
		}
		r.prefix, _, _ = strings.Cut(text, nameTemplate)
	}
	return nil
}

func (d document) namespaces(r *rule, n *yaml.Node) error {
	list, err := d.texts(n, "namespaces", maxNamespaces)
	if err != nil {
		return err
	}
	r.allNamespaces = slices.Equal(list, []string{anyNamespace})
	switch {
	case len(list) == 0:
		return d.bad(n.Line, "namespaces is empty: list some, or %q for all", anyNamespace)
	case r.role == roleManager && !r.allNamespaces:
		return d.bad(n.Line, "managers need all namespaces: want namespaces: [%q]", anyNamespace)
	case r.allNamespaces:
		return nil
	}
	for _, text := range list {
		ns := leasehold.Namespace(text)
		if text == anyNamespace {
			return d.bad(n.Line, "%q means all namespaces and must be the only entry", anyNamespace)
		}
		if err := ns.Validate(); err != nil {
			return d.bad(n.Line, "%w", err)
		}
		r.namespaces = append(r.namespaces, ns)
	}
	return nil
}

// names parses the owner names of a rule whose identity is set.
func (d document) names(r *rule, n *yaml.Node) error {
	pattern := isPattern(r.identity)
	switch {
	case n == nil && pattern:
		r.names = []string{nameTemplate}
		return nil
	case n == nil && r.role == roleOwner:
		return d.bad(r.line, "the rule has no names: list the owner's names, or put %s into the identity", nameTemplate)
	case n == nil:
		return nil
	case r.role != roleOwner:
		return d.bad(n.Line, "names are for owners, but the role is %s", r.role)
	}
	list, err := d.texts(n, "names", maxNames)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return d.bad(n.Line, "names is empty")
	}
	for _, name := range list {
		if strings.Contains(name, nameTemplate) != pattern {
			return d.bad(n.Line, "the name %q: names contain %s if and only if the identity does", clip(name), nameTemplate)
		}
		if err := leasehold.OwnerID(strings.ReplaceAll(name, nameTemplate, "n")).Validate(); err != nil {
			return d.bad(n.Line, "%w", err)
		}
	}
	r.names = list
	return nil
}

func (d document) tokens(b *ruleset, n *yaml.Node) error {
	entries, err := d.list(n, "tokens", maxTokens)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		t, err := d.token(entry)
		if err != nil {
			return err
		}
		if b.tokens[t.name] != nil {
			return d.bad(entry.Line, "two tokens have the name %q: rename one", t.name)
		}
		if !b.insertToken(t) {
			return d.bad(entry.Line, "two tokens have the same sha256")
		}
	}
	return nil
}

func (d document) token(n *yaml.Node) (*token, error) {
	f, err := d.fields(n, "name", "sha256", "expires")
	if err != nil {
		return nil, err
	}
	if f["name"] == nil || f["sha256"] == nil {
		return nil, d.bad(n.Line, "a token needs a name and a sha256: create one with leasehold token")
	}
	t := &token{}
	if t.name, err = d.text(f["name"], "name"); err != nil {
		return nil, err
	}
	if !plainName(t.name) {
		return nil, d.bad(f["name"].Line, "the name %q: want 1 to %d letters, digits, '.', '_' and '-'", clip(t.name), maxTokenName)
	}
	sum := f["sha256"] // may look like a number
	decoded, err := hex.DecodeString(sum.Value)
	if err != nil || sum.Kind != yaml.ScalarNode || len(decoded) != len(t.hash) {
		return nil, d.bad(sum.Line, "sha256 must have %d hexadecimal digits", 2*len(t.hash))
	}
	copy(t.hash[:], decoded)
	if until := f["expires"]; until != nil {
		t.expires, err = time.Parse(time.DateOnly, until.Value)
		if err != nil {
			t.expires, err = time.Parse(time.RFC3339, until.Value)
		}
		if err != nil || until.Kind != yaml.ScalarNode {
			return nil, d.bad(until.Line, "expires must be a day such as 2027-01-01, or a time such as 2027-01-01T18:00:00Z")
		}
	}
	return t, nil
}
