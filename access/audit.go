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
	loggedDenials = 3                // of one caller and method, before they are only counted
	denialWindow  = 10 * time.Second // between the lines with their number

	// Bounds on the maps that suppress repeated lines. A full map is cleared, which
	// repeats some lines.
	maxDenied   = 4096
	maxAdmitted = 1 << 16

	// maxAnonymous bounds the anonymous callers, by host and method, that are counted
	// separately: one attacker may have any number of addresses.
	maxAnonymous = 256
)

// An audit writes the audit log.
type audit struct {
	logger *slog.Logger

	mu        sync.Mutex
	denied    map[deniedKey]*denials
	anonymous int // entries of anonymous callers in denied
	admitted  map[admittedKey]bool
}

// A deniedKey is the caller and method by which denied calls are counted. It contains no
// method name that the caller can make up.
type deniedKey struct {
	caller, method string
	anonymous      bool
}

// otherAnonymous counts the anonymous callers beyond maxAnonymous.
var otherAnonymous = deniedKey{caller: "other anonymous callers", anonymous: true}

func deniedKeyOf(s *session) deniedKey {
	key := deniedKey{caller: s.caller.key(), method: s.fullMethod, anonymous: len(s.caller.ids) == 0}
	if s.method.need == unlisted {
		key.method = "(unknown)"
	}
	return key
}

// denials are the denied calls of one caller and method since begun.
type denials struct {
	begun      time.Time
	logged     int
	suppressed int
}

type admittedKey struct {
	caller  string
	subject subject
	session string
}

func newAudit(logger *slog.Logger) *audit {
	return &audit{logger: logger, denied: make(map[deniedKey]*denials), admitted: make(map[admittedKey]bool)}
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

func (a *audit) logDenial(s *session, why error) {
	if !a.shouldLog(deniedKeyOf(s), time.Now()) {
		return
	}
	a.write(slog.LevelWarn, "call denied", append(s.attrs(), slog.String("why", why.Error()))...)
}

// shouldLog reports whether a denied call gets a line of its own, and counts it if not.
func (a *audit) shouldLog(key deniedKey, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.denied[key]
	if d == nil && key.anonymous && a.anonymous >= maxAnonymous {
		key = otherAnonymous
		d = a.denied[key]
	}
	if d == nil {
		d = a.startCount(key, now)
	}
	if d.logged < loggedDenials {
		d.logged++
		return true
	}
	d.suppressed++
	return false
}

// startCount starts to count denied calls. The lock is held.
func (a *audit) startCount(key deniedKey, now time.Time) *denials {
	if len(a.denied) >= maxDenied {
		clear(a.denied)
		a.anonymous = 0
	}
	if key.anonymous {
		a.anonymous++
	}
	d := &denials{begun: now}
	a.denied[key] = d
	return d
}

// summarize logs the number of suppressed lines once per denialWindow.
func (a *audit) summarize(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, d := range a.denied {
		switch {
		case now.Sub(d.begun) < denialWindow:
		case d.suppressed == 0:
			delete(a.denied, key)
			if key.anonymous {
				a.anonymous--
			}
		default:
			a.write(slog.LevelWarn, "further calls denied", slog.String("caller", clip(key.caller)),
				slog.String("method", short(key.method)), slog.Int("times", d.suppressed))
			*d = denials{begun: now, logged: loggedDenials}
		}
	}
}

// logOperation logs an operation and its result, unless it is a dry run.
func (a *audit) logOperation(s *session, request any, err error) {
	if dry, ok := request.(interface{ GetDryRun() bool }); ok && dry.GetDryRun() {
		return
	}
	if !s.method.audited || s.forwarded.Load() && err == nil { // the leader has logged it
		return
	}
	attrs := s.attrs()
	if d := s.decision.Load(); d != nil && d.subject.namespace != "" {
		attrs = append(attrs, slog.String("namespace", clip(string(d.subject.namespace))))
	}
	attrs = append(attrs, slog.String("request", requestText(request)))
	if err != nil {
		a.write(slog.LevelWarn, "operation failed", append(attrs, slog.String("why", err.Error()))...)
		return
	}
	a.write(slog.LevelInfo, "operation completed", attrs...)
}

// requestText renders a request on one line. No request contains a secret.
func requestText(request any) string {
	const most = 4096
	m, ok := request.(proto.Message)
	switch {
	case !ok:
		return ""
	case proto.Size(m) > most:
		return "(too long)"
	}
	// prototext varies its spaces at random.
	return clip(strings.Join(strings.Fields(prototext.MarshalOptions{}.Format(m)), " "))
}

type holder interface{ GetSession() []byte }

// logAdmission logs the first admission of each owner process.
func (a *audit) logAdmission(s *session, about subject, of holder) {
	var session leasehold.Session
	copy(session[:], of.GetSession())
	key := admittedKey{s.caller.key(), about, string(session[:])}
	a.mu.Lock()
	logged := a.admitted[key]
	if !logged {
		if len(a.admitted) >= maxAdmitted {
			clear(a.admitted)
		}
		a.admitted[key] = true
	}
	a.mu.Unlock()
	if logged {
		return
	}
	a.write(slog.LevelInfo, "owner admitted", slices.Concat(s.attrs(), []slog.Attr{
		slog.String("namespace", clip(string(about.namespace))), slog.String("owner", clip(string(about.owner))),
		slog.String("session", session.Short()),
	})...)
}
