//go:build unix

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A canary is a secret that must not be found where secrets do not belong.
type canary struct {
	name  string // of what it is
	value string
}

// forms are how the secret would look, if it was encoded by somebody who did not know it for
// one. In base64 it depends on how many bytes come before.
func (c canary) forms() []string {
	out := []string{c.value, hex.EncodeToString([]byte(c.value)), strings.ToUpper(hex.EncodeToString([]byte(c.value)))}
	for before := range 3 {
		padded := strings.Repeat("x", before) + c.value
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString([]byte(padded))
			out = append(out, text[(before*4+2)/3+1:len(text)-2]) // without what depends on the neighbours
		}
	}
	return append(out, strings.Trim(fmt.Sprintf("%d", []byte(c.value)), "[]")) // as %v has it
}

// A sweep is all that was found in places that people read, and that are kept.
type sweep struct {
	canaries []canary
	found    map[string]string // by where
}

func newSweep(canaries ...canary) *sweep { return &sweep{canaries, make(map[string]string)} }

// secret makes a canary and remembers it.
func (s *sweep) secret(name string) string {
	c := canary{name, "canary-" + strings.ReplaceAll(name, " ", "-") + "-7f3a9c51d2e8"}
	s.canaries = append(s.canaries, c)
	return c.value
}

func (s *sweep) add(where, text string) { s.found[where] += text }

// file adds what is in a file.
func (s *sweep) file(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.add(path, string(text))
}

// get adds what a page says, with its headers. Of one that does not end it adds the beginning.
func (s *sweep) get(t *testing.T, url string, change func(*http.Request)) (status int, body string) {
	t.Helper()
	return s.getWith(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, url, change)
}

func (s *sweep) getWith(t *testing.T, client *http.Client, url string, change func(*http.Request)) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := client.Do(r)
	if err != nil && ctx.Err() != nil {
		return 0, "" // nobody has answered in time: what was sent is what matters
	}
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<20))
	s.add(url, fmt.Sprint(answer.Header)+string(text))
	return answer.StatusCode, string(text)
}

// process adds what other users of the computer see of a process.
func (s *sweep) process(t *testing.T, pid int) {
	t.Helper()
	if runtime.GOOS == "linux" {
		s.file(t, "/proc/"+strconv.Itoa(pid)+"/cmdline")
	}
}

// debug adds all that a process says of itself to whoever debugs it.
func (s *sweep) debug(t *testing.T, addr string) {
	t.Helper()
	for _, page := range []string{"", "cmdline", "goroutine?debug=2", "heap?debug=1", "allocs?debug=1", "threadcreate?debug=1", "symbol", "mutex?debug=1"} {
		if status, _ := s.get(t, "http://"+addr+"/debug/pprof/"+page, nil); status != http.StatusOK {
			t.Errorf("/debug/pprof/%s answers %d", page, status)
		}
	}
}

// panics makes a process print all of its stacks, as a panic would, and adds what it has said.
func (s *sweep) panics(t *testing.T, p *process) {
	t.Helper()
	p.signal(t, quitSignal)
	if status := p.exit(t); status == 0 {
		t.Errorf("it was to print its stacks, and has ended with status %d", status)
	}
	if said := p.said(t); !strings.Contains(said, "goroutine 1") {
		t.Errorf("there are no stacks in what it said: %s", said)
	}
	s.file(t, p.Launch.Log)
}

// traces takes in spans, and returns the environment of a process that sends them there,
// and what adds them once there are some.
func (s *sweep) traces(t *testing.T) (env []string, collect func()) {
	t.Helper()
	var mu sync.Mutex
	var spans strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // what has come is what matters
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprint(&spans, r.Header, string(text)) // it never fails
	}))
	t.Cleanup(collector.Close)
	env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_BSP_SCHEDULE_DELAY=100"}
	return env, func() {
		t.Helper()
		eventually(t, "there are spans", func() error {
			mu.Lock()
			defer mu.Unlock()
			if !strings.Contains(spans.String(), "leasehold.") {
				return errNotYet
			}
			s.add("traces", spans.String())
			return nil
		})
	}
}

// clean looks for the canaries.
func (s *sweep) clean(t *testing.T) {
	t.Helper()
	if len(s.found) == 0 || len(s.canaries) == 0 {
		t.Fatal("there is nothing to look through, or for")
	}
	for where, text := range s.found {
		for _, c := range s.canaries {
			for _, form := range c.forms() {
				if at := strings.Index(text, form); at >= 0 {
					t.Errorf("%s is in %s, as %q: ...%q...", c.name, where, form, text[max(0, at-120):min(len(text), at+len(form)+40)])
				}
			}
		}
	}
}

// inFile writes a secret to a file that only we can read.
func inFile(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCanariesAreSeen: the net has no holes of its own.
func TestCanariesAreSeen(t *testing.T) {
	c := canary{"it", "canary-it-7f3a9c51d2e8"}
	for name, text := range map[string]string{
		"as it is": "password=" + c.value + "!", "hexadecimal": fmt.Sprintf("%x", "ab"+c.value), "upper case": fmt.Sprintf("%X", c.value),
		"basic authentication":  "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+c.value)),
		"another":               base64.URLEncoding.EncodeToString([]byte("u:" + c.value + ">>")),
		"in the middle of JSON": base64.StdEncoding.EncodeToString([]byte(`{"p":"` + c.value + `"}`)),
		"as bytes":              fmt.Sprintf("%v", []byte("ab"+c.value+"cd")),
	} {
		hit := false
		for _, form := range c.forms() {
			hit = hit || strings.Contains(text, form)
		}
		if !hit {
			t.Errorf("%s: not seen in %q", name, text)
		}
	}
}
