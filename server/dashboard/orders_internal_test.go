package dashboard

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secret"
)

const aToken = "correct horse battery staple"

// send sends a request like the page, and returns the status and the body of the response.
func send(d http.Handler, path, body, cookie, csrf string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Host = "localhost"
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: cookieName(r), Value: cookie})
	}
	r.Header.Set(csrfHeader, csrf)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	text, err := io.ReadAll(w.Body)
	if err != nil {
		panic(err)
	}
	return w.Code, string(text)
}

// TestOrdersNeedASession: an order needs both the cookie of a session and the CSRF token of the
// session.
func TestOrdersNeedASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAdmin()
		f.owners = []*leaseholdv1.OwnerStatus{{Holder: &leaseholdv1.Holder{Owner: "a"}, State: leaseholdv1.OwnerState_OWNER_STATE_MEMBER}}
		d, err := New(Config{Admin: f, Token: secret.New(aToken), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		cookie, login, err := d.sessions.begin("", aToken)
		_, another, errAnother := d.sessions.begin("", aToken)
		if err != nil || errAnother != nil || login.csrf == another.csrf {
			t.Fatal("no login, or one like another")
		}
		csrf, other := login.csrf, another.csrf
		const drain = `{"namespace":"pool","owner":"a"}`
		const move = `{"namespace":"pool","owner":"a","start":"0000000000000000","limit":"8000000000000000"}`
		for name, test := range map[string]struct {
			path, body, cookie, csrf string
			want                     int
		}{
			"drain":                      {"/api/drain", drain, cookie, csrf, 200},
			"move":                       {"/api/move", move, cookie, csrf, 200},
			"no cookie":                  {"/api/drain", drain, "", csrf, 403},
			"another cookie":             {"/api/drain", drain, "x" + cookie, csrf, 403},
			"no token":                   {"/api/drain", drain, cookie, "", 403},
			"the token of another login": {"/api/drain", drain, cookie, other, 403},
			"a key that is none":         {"/api/move", strings.Replace(move, "8", "x", 1), cookie, csrf, 400},
			"a move without a limit":     {"/api/move", `{"namespace":"pool","owner":"a","start":"0000000000000000"}`, cookie, csrf, 422},
			"an owner that is none":      {"/api/drain", `{"namespace":"pool","owner":"b"}`, cookie, csrf, 404},
			"a field that is none":       {"/api/drain", `{"ownr":"a"}`, cookie, csrf, 400},
			"two documents":              {"/api/drain", drain + drain, cookie, csrf, 400},
		} {
			if status, text := send(d, test.path, test.body, test.cookie, test.csrf); status != test.want {
				t.Errorf("%s: %d, want %d: %s", name, status, test.want, text)
			}
		}
		if len(f.drained) != 1 || len(f.moved) != 1 || f.drained[0].GetLoseState() || f.drained[0].GetDryRun() {
			t.Errorf("%d drains and %d moves came through, want one each, that lose nothing", len(f.drained), len(f.moved))
		}
		time.Sleep(sessionIdle / 2)
		if status, _ := send(d, "/api/drain", drain, cookie, csrf); status != 200 {
			t.Errorf("%d within the hour, want 200", status)
		}
		time.Sleep(sessionIdle)
		if status, text := send(d, "/api/drain", drain, cookie, csrf); status != 403 || !strings.Contains(text, "log in") {
			t.Errorf("%d after an idle hour, want 403: %s", status, text)
		}
	})
}

func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(only(secret.New(aToken)))
		var first string
		for i := range 3 * maxSessions {
			cookie, _, err := s.begin("", aToken)
			if err != nil || len(s.open) > maxSessions {
				t.Fatalf("login %d: %v, %d are open", i, err, len(s.open))
			}
			if i == 0 {
				first = cookie
			}
			time.Sleep(time.Second)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: cookieName(r), Value: first})
		if s.find(r) != nil {
			t.Error("the oldest session is still valid")
		}
	})
}

// TestExplainUsesOneLSN: a change between the two requests of an explanation is not part of it.
func TestExplainUsesOneLSN(t *testing.T) {
	w := &world{fakeAdmin: newFakeAdmin()}
	d, err := New(Config{Admin: lagging{w}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w.step(0, false, 1, false)
	e, err := d.explanation(t.Context(), "pool", 0)
	if err != nil || e.Found.Owner != "owner-1" || len(e.History.Entries) != 1 || e.History.Entries[0].Owner != "owner-1" {
		t.Errorf("%+v, %v, want the grant to owner-1 and nothing later", e, err)
	}
}

// A lagging manager moves the key between the two requests of an explanation.
type lagging struct{ *world }

func (l lagging) ListHistory(ctx context.Context, r *leaseholdv1.ListHistoryRequest) (*leaseholdv1.ListHistoryResponse, error) {
	l.step(0, false, 2, true)
	return l.world.ListHistory(ctx, r)
}

func TestParseKey(t *testing.T) {
	for text, want := range map[string]leasehold.Key{
		"alice": leasehold.KeyOf("alice"), "0x10": 0x10, "0XfF": 0xff, "<script>": leasehold.KeyOf("<script>"),
		"0xffffffffffffffff": 1<<64 - 1,
	} {
		if _, key, err := parseKey(text, false); err != nil || key != want {
			t.Errorf("%s is %v, %v, want %v", text, key, err, want)
		}
	}
	for _, text := range []string{"", "0x", "0xg", "0x12345678123456781", strings.Repeat("a", maxKeyLen+1)} {
		if _, key, err := parseKey(text, false); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%.20s is %v, %v, want an error", text, key, err)
		}
	}
	if name, key, err := parseKey("0x10", true); name != "0x10" || key != leasehold.KeyOf("0x10") || err != nil {
		t.Errorf("a name that looks like a key is %q, %v, %v", name, key, err)
	}
}
