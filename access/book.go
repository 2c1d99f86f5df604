package access

import (
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

// A book is an access file that makes sense. It is immutable once it is parsed.
type book struct {
	digest [sha256.Size]byte // of the file

	exact    map[secure.Identity][]*rule
	patterns []*rule // those with {name} in their identities

	tokens  map[string]*token            // by name
	secrets map[[sha256.Size]byte]*token // by salted hash
	salt    [16]byte
}

func newBook() *book {
	b := &book{
		exact: make(map[secure.Identity][]*rule), tokens: make(map[string]*token),
		secrets: make(map[[sha256.Size]byte]*token),
	}
	_, _ = rand.Read(b.salt[:]) // it never fails
	return b
}

func (b *book) add(r *rule) {
	b.exact[r.identity] = append(b.exact[r.identity], r)
	if isPattern(r.identity) {
		b.patterns = append(b.patterns, r)
	}
}

// addToken reports false if there is one with the same secret.
func (b *book) addToken(t *token) bool {
	at := b.salted(t.hash)
	if b.secrets[at] != nil {
		return false
	}
	b.tokens[t.name], b.secrets[at] = t, t
	return true
}

// overlap returns a rule that says the same as another, in part at least.
func (b *book) overlap(r *rule) *rule {
	for _, before := range b.exact[r.identity] {
		if before.role != r.role {
			continue
		}
		if before.everywhere || r.everywhere || slices.ContainsFunc(r.namespaces, before.covers) {
			return before
		}
	}
	return nil
}

func (b *book) rules() int {
	n := 0
	for _, list := range b.exact {
		n += len(list)
	}
	return n
}

func (b *book) grants(ids []secure.Identity) []grant {
	var out []grant
	for _, id := range ids {
		for _, r := range b.exact[id] { // no identity of a caller has {name} in it
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

// permit returns why a caller with these grants may not do what a method does to a
// subject, in words that follow its name; "" if it may.
func permit(grants []grant, m method, s subject) string {
	var names []leasehold.OwnerID // that it could use
	covered := false
	for _, g := range grants {
		if !g.meets(m.need) {
			continue
		}
		covered = true
		switch {
		case m.scope == nil, m.lists && s.namespace == "":
			return ""
		case !g.covers(s.namespace):
		case m.need != toHold:
			return ""
		default:
			own := g.own()
			if slices.Contains(own, s.owner) {
				return ""
			}
			names = append(names, own...)
		}
	}
	switch {
	case len(names) > 0:
		return whyName(s, names)
	case covered:
		return whyNamespace(s)
	}
	return whyRole(grants, m)
}
