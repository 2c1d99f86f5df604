package access

import (
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

// A ruleset is a parsed access file. It is immutable.
type ruleset struct {
	digest [sha256.Size]byte // the file's hash

	exact    map[secure.Identity][]*rule
	patterns []*rule // rules with {name} in their identities

	tokens  map[string]*token            // by name
	secrets map[[sha256.Size]byte]*token // by salted hash
	salt    [16]byte
}

func newRuleset() *ruleset {
	b := &ruleset{
		exact: make(map[secure.Identity][]*rule), tokens: make(map[string]*token),
		secrets: make(map[[sha256.Size]byte]*token),
	}
	_, _ = rand.Read(b.salt[:]) // it never fails
	return b
}

func (b *ruleset) add(r *rule) {
	b.exact[r.identity] = append(b.exact[r.identity], r)
	if isPattern(r.identity) {
		b.patterns = append(b.patterns, r)
	}
}

// insertToken returns false if another token has the same secret.
func (b *ruleset) insertToken(t *token) bool {
	at := b.saltedHash(t.hash)
	if b.secrets[at] != nil {
		return false
	}
	b.tokens[t.name], b.secrets[at] = t, t
	return true
}

// overlapping returns a rule that gives the same identity the same role in one of the
// same namespaces; nil if there is none.
func (b *ruleset) overlapping(r *rule) *rule {
	for _, before := range b.exact[r.identity] {
		if before.role != r.role {
			continue
		}
		if before.allNamespaces || r.allNamespaces || slices.ContainsFunc(r.namespaces, before.includes) {
			return before
		}
	}
	return nil
}

func (b *ruleset) rules() int {
	n := 0
	for _, list := range b.exact {
		n += len(list)
	}
	return n
}

func (b *ruleset) grants(ids []secure.Identity) []grant {
	var out []grant
	for _, id := range ids {
		for _, r := range b.exact[id] { // a caller's identity never contains {name}
			out = append(out, grant{rule: r})
		}
		for _, r := range b.patterns {
			if !strings.HasPrefix(string(id), r.prefix) {
				continue
			}
			if name, ok := id.Match(r.identity); ok {
				out = append(out, grant{r, name})
			}
		}
	}
	return out
}

// permit returns the reason why these grants do not permit a method on a subject, as a
// predicate of the caller; "" if they permit it.
func permit(grants []grant, m method, s subject) string {
	var names []leasehold.OwnerID // permitted in this namespace
	covered := false
	for _, g := range grants {
		if !g.satisfies(m.need) {
			continue
		}
		covered = true
		switch {
		case m.subjectOf == nil, m.listsAll && s.namespace == "":
			return ""
		case !g.includes(s.namespace):
		case m.need != holdLeases:
			return ""
		default:
			ownerNames := g.ownerNames()
			if slices.Contains(ownerNames, s.owner) {
				return ""
			}
			names = append(names, ownerNames...)
		}
	}
	switch {
	case len(names) > 0:
		return nameDenied(s, names)
	case covered:
		return namespaceDenied(s)
	}
	return roleDenied(grants, m)
}
