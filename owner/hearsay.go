package owner

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// hearsay is what each manager last said, or why it said nothing: what an error
// needs to explain why no leader could be found. It may be used from many
// goroutines at once.
type hearsay struct {
	mu   sync.Mutex
	said map[string]string
	// versions are those of the protocol that the managers speak.
	versions map[string]uint32
	// down are those who do not speak to us, and denial is that somebody has said that we
	// may not speak to it.
	down   map[string]bool
	denial error
	// taken: the last leader's word was that another process has our name.
	taken bool
}

// maxHearsay bounds how many managers are remembered; leaders that we were
// pointed to may come and go.
const maxHearsay = maxManagers + 16

// expect notes whom we will ask, so that those who never say a word are named
// too.
func (h *hearsay) expect(managers []string) {
	for _, addr := range managers {
		h.put(addr, nothingYet)
	}
}

const nothingYet = "has not answered"

// silent reports whether a manager that we have asked has not said a word yet, and
// nobody has said why.
func (h *hearsay) silent(from string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said[from] == nothingYet
}

// hangUp notes why a manager does not speak to us, and reports whether that is news. If none
// of these does, and one because we may not, that is the refusal; the access file of
// another may be newer.
func (h *hearsay) hangUp(from string, why error, managers []string) (news bool, refusal error) {
	news = h.add(from, why)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down[from] = true
	if leasehold.KindOf(why) == leasehold.ErrDenied {
		h.denial = why
	}
	if slices.ContainsFunc(managers, func(addr string) bool { return !h.down[addr] }) {
		return news, nil
	}
	return news, h.denial
}

// add reports whether that is news.
func (h *hearsay) add(from string, why error) bool { return h.put(from, why.Error()) }

func (h *hearsay) redirect(from string, n protocol.NotLeader) {
	if n.Leader == "" {
		h.put(from, "does not lead and knows of no leader")
		return
	}
	h.put(from, fmt.Sprintf("does not lead, says that %s does", n.Leader))
}

func (h *hearsay) hear(from string, r *protocol.LeaseReply) {
	switch {
	case r.Refusal != leasehold.Other:
		h.put(from, fmt.Sprintf("leads, and refuses: %v", r.Refusal))
	case r.Incumbent != nil:
		h.put(from, fmt.Sprintf("leads, and says that session %s at %s has the name %q", r.Incumbent.Session.Short(), r.Incumbent.Addr, r.Incumbent.Owner))
	default:
		h.put(from, "leads")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken = r.Incumbent != nil
}

func (h *hearsay) put(from, what string) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.said == nil || len(h.said) >= maxHearsay {
		h.said, h.down = make(map[string]string), make(map[string]bool)
	}
	news = h.said[from] != what
	h.said[from] = what
	delete(h.down, from)
	return news
}

// speaks notes which version a manager speaks: it may say so only once.
func (h *hearsay) speaks(from string, version uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.versions == nil || len(h.versions) >= maxHearsay {
		h.versions = make(map[string]uint32)
	}
	h.versions[from] = version
}

// version returns the one that a manager speaks, our own if it has not said so.
func (h *hearsay) version(from string) uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v, said := h.versions[from]; said {
		return v
	}
	return wire.Version
}

// kind is that of the error in which the hearsay ends up.
func (h *hearsay) kind() leasehold.Kind {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken {
		return leasehold.ErrNameTaken
	}
	return leasehold.ErrUnavailable
}

// String lists the managers that were asked, sorted, with their words.
func (h *hearsay) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := make([]string, 0, len(h.said))
	for from, what := range h.said {
		lines = append(lines, from+": "+what)
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}
