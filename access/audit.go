package access

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
)

const (
	fewRefusals   = 3                // are told one by one
	refusalsEvery = 10 * time.Second // is how often the others are, by their number

	// Bounds on what is remembered in order not to be told again. When there is more,
	// all is forgotten, which costs a few lines.
	maxRefused = 4096
	maxLetIn   = 1 << 16

	// maxStrangers is how many calls of those whom nobody knows are told apart, by host and
	// method. Who has a network has as many addresses as he likes.
	maxStrangers = 256
)

// An audit writes down who has done what, and who was not let.
type audit struct {
	logger *slog.Logger

	mu        sync.Mutex
	refused   map[refusedKey]*refusals
	strangers int // among refused
	letIn     map[letInKey]bool
}

// A refusedKey says which refusals are alike. Of methods that there are not, and of those
// who are too many, the caller makes up neither names nor numbers: nothing of his is kept.
type refusedKey struct {
	caller, method string
	stranger       bool
}

// otherStrangers are those beyond maxStrangers.
var otherStrangers = refusedKey{caller: "other strangers", stranger: true}

func refusedBy(s *session) refusedKey {
	key := refusedKey{caller: s.caller.key(), method: s.fullMethod, stranger: len(s.caller.ids) == 0}
	if s.method.need == forNobody {
		key.method = "(unknown)"
	}
	return key
}

// refusals are those of one caller and method since begun.
type refusals struct {
	begun  time.Time
	told   int
	silent int
}

type letInKey struct {
	caller  string
	subject subject
	session string
}

func newAudit(logger *slog.Logger) *audit {
	return &audit{logger: logger, refused: make(map[refusedKey]*refusals), letIn: make(map[letInKey]bool)}
}

func (s *session) attrs() []slog.Attr {
	out := []slog.Attr{slog.String("caller", s.caller.String()), slog.String("method", short(s.fullMethod))}
	if s.caller.addr != "" {
		out = append(out, slog.String("from", s.caller.addr))
	}
	if len(s.caller.via) > 0 {
		out = append(out, slog.String("via", Caller{ids: s.caller.via}.String()))
	}
	return out
}

func (a *audit) write(level slog.Level, text string, attrs ...slog.Attr) {
	a.logger.LogAttrs(context.Background(), level, text, attrs...)
}

func (a *audit) refuse(s *session, why error) {
	if !a.news(refusedBy(s), time.Now()) {
		return
	}
	a.write(slog.LevelWarn, "refused", append(s.attrs(), slog.String("why", why.Error()))...)
}

// news reports whether a refusal is to be told, and counts it if not.
func (a *audit) news(key refusedKey, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.refused[key]
	if r == nil && key.stranger && a.strangers >= maxStrangers {
		key = otherStrangers
		r = a.refused[key]
	}
	if r == nil {
		r = a.begin(key, now)
	}
	if r.told < fewRefusals {
		r.told++
		return true
	}
	r.silent++
	return false
}

// begin begins to count refusals. The lock is held.
func (a *audit) begin(key refusedKey, now time.Time) *refusals {
	if len(a.refused) >= maxRefused {
		clear(a.refused)
		a.strangers = 0
	}
	if key.stranger {
		a.strangers++
	}
	r := &refusals{begun: now}
	a.refused[key] = r
	return r
}

func (a *audit) sumUp(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, r := range a.refused {
		switch {
		case now.Sub(r.begun) < refusalsEvery:
		case r.silent == 0:
			delete(a.refused, key)
			if key.stranger {
				a.strangers--
			}
		default:
			a.write(slog.LevelWarn, "refused again and again", slog.String("caller", clip(key.caller)),
				slog.String("method", short(key.method)), slog.Int("times", r.silent))
			*r = refusals{begun: now, told: fewRefusals}
		}
	}
}

// ordered tells that an order was given, and how it ended. One that only asks what
// would happen changes nothing, and is none.
func (a *audit) ordered(s *session, request any, err error) {
	if dry, ok := request.(interface{ GetDryRun() bool }); ok && dry.GetDryRun() {
		return
	}
	if !s.method.order || s.passedOn.Load() && err == nil { // the leader has written it down
		return
	}
	attrs := s.attrs()
	if d := s.decision.Load(); d != nil && d.subject.namespace != "" {
		attrs = append(attrs, slog.String("namespace", clip(string(d.subject.namespace))))
	}
	attrs = append(attrs, slog.String("request", inWords(request)))
	if err != nil {
		a.write(slog.LevelWarn, "an order has failed", append(attrs, slog.String("why", err.Error()))...)
		return
	}
	a.write(slog.LevelInfo, "an order was carried out", attrs...)
}

// inWords writes a request on one line. None has a secret in it.
func inWords(request any) string {
	const most = 4096
	m, ok := request.(proto.Message)
	switch {
	case !ok:
		return ""
	case proto.Size(m) > most:
		return "too long to be written down"
	}
	// Its spaces are drawn at random, lest somebody compare it.
	return clip(strings.Join(strings.Fields(prototext.MarshalOptions{}.Format(m)), " "))
}

type holder interface{ GetSession() []byte }

// let tells that an owner was let in, if that is news: once for each of its
// processes.
func (a *audit) let(s *session, about subject, of holder) {
	var session leasehold.Session
	copy(session[:], of.GetSession())
	key := letInKey{s.caller.key(), about, string(session[:])}
	a.mu.Lock()
	known := a.letIn[key]
	if !known {
		if len(a.letIn) >= maxLetIn {
			clear(a.letIn)
		}
		a.letIn[key] = true
	}
	a.mu.Unlock()
	if known {
		return
	}
	a.write(slog.LevelInfo, "an owner was let in", slices.Concat(s.attrs(), []slog.Attr{
		slog.String("namespace", clip(string(about.namespace))), slog.String("owner", clip(string(about.owner))),
		slog.String("session", session.Short()),
	})...)
}
