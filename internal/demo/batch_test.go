package demo

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
)

func TestManyAreAskedAtOnce(t *testing.T) {
	server := newServer()
	l := newLoad(&Config{Users: 1}, &aTable{}, server)
	defer l.close()
	questions := []question{{keyA, 1, "first"}, {keyB, 0, ""}, {keyA, 3, "third"}, {keyA, 2, "second"}}
	got, err := l.askMany(t.Context(), "server", questions)
	want := []reply{{1, sumOf("first")}, {0, sumOf("")}, {3, sumOf("third")}, {3, sumOf("third")}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(reply{})); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	server.presence.leases.(*fakeLeases).generation = 0
	got, err = l.askMany(t.Context(), "server", questions[:1])
	if err != nil || len(got) != 1 || got[0].number != declined {
		t.Errorf("not the owner: %+v, %v", got, err)
	}
}

func TestBadBatchesAreRefused(t *testing.T) {
	p, _, _ := startPresence()
	good := string(encodeQuestions([]question{{keyA, 1, "first"}}))
	for name, body := range map[string]string{
		"half a head":   good[:questionHead-1],
		"half a text":   good[:len(good)-1],
		"a long text":   string(encodeQuestions([]question{{keyA, 1, strings.Repeat("x", maxText+1)}})),
		"too many":      strings.Repeat(good, maxQuestions+1),
		"too many byte": strings.Repeat("x", maxBatchSize+1),
	} {
		w := httptest.NewRecorder()
		p.handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/presence", strings.NewReader(body)))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	if _, err := decodeReplies(make([]byte, replySize+1), 1); !errors.Is(err, leasehold.Unavailable) {
		t.Errorf("half a reply: %v", err)
	}
}

// TestEveryoneIsFilledAndLookedThrough, also if some keys have no owner at first;
// and what is missing, or is not what was set, is found.
func TestEveryoneIsFilledAndLookedThrough(t *testing.T) {
	const n = 2000
	for _, test := range []struct {
		name            string
		spoil           func(*aServer, *load)
		silent, garbled uint64
	}{
		{"all is well", func(*aServer, *load) {}, 0, 0},
		{"all is lost", func(s *aServer, _ *load) { s.forget() }, n, 0},
		{"one is garbled", func(s *aServer, l *load) {
			_, err := s.presence.set(l.users[7].key, 2, "something else")
			if err != nil {
				panic(err)
			}
		}, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &aTable{until: time.Now().Add(time.Second), unowned: newUsers(n)[1].key}
				server := newServer()
				l := newLoad(&Config{Users: n, ValueSize: 200}, a, server)
				defer l.close()
				var last atomic.Int64
				if err := l.fill(t.Context(), func(done int) { last.Store(int64(done)) }); err != nil || last.Load() != n {
					t.Fatalf("%d filled: %v", last.Load(), err)
				}
				test.spoil(server, l)
				if err := l.lookThrough(t.Context(), func(int) {}); err != nil {
					t.Fatal(err)
				}
				pause(t.Context(), noticePatience)
				if c := l.counts(); c.lookedThrough != n || c.silent != test.silent || c.garbled != test.garbled || c.stale != 0 {
					t.Errorf("got %+v", c)
				}
			})
		})
	}
}

// TestEveryoneIsAskedAgain who was asked about at the wrong server.
func TestEveryoneIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.presence.leases = &fakeLeases{} // it owns nothing
		l := newLoad(&Config{Users: 10, ValueSize: 1}, &aTable{}, server)
		defer l.close()
		filled := make(chan error, 1)
		go func() { filled <- l.fill(t.Context(), func(int) {}) }()
		pause(t.Context(), time.Second)
		synctest.Wait()
		if n := server.presence.statuses.count.Load(); n != 0 || len(filled) > 0 {
			t.Errorf("a server that owns nothing has %d statuses", n)
		}
		server.forget() // now it owns everything
		if err := <-filled; err != nil || server.presence.statuses.count.Load() != 10 {
			t.Errorf("%d are filled: %v", server.presence.statuses.count.Load(), err)
		}
	})
}

// TestEveryoneGivesUp if nobody answers for too long.
func TestEveryoneGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		us := newUsers(10)
		a := &aTable{until: time.Now().Add(time.Hour), unowned: us[3].key}
		l := newLoad(&Config{Users: 10, ValueSize: 1}, a, newServer())
		defer l.close()
		err := l.fill(t.Context(), func(int) {})
		if err == nil || !strings.Contains(err.Error(), "1 of 10 keys have had no answer for 30s") || !errors.Is(err, leasehold.NoOwner) {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.fill(ctx, func(int) {}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTextsAreOfTheirUser(t *testing.T) {
	us := newUsers(2).each()
	seen := make(map[string]bool)
	for _, u := range us {
		for number := range uint64(20) {
			text := u.text(number, 200)
			if len(text) != 200 || seen[text] {
				t.Errorf("%q", text)
			}
			seen[text] = true
		}
	}
	if got := us[0].text(1, 3); len(got) != 3 {
		t.Errorf("%q", got)
	}
}
