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

// A canary is a secret that must not appear in logs, pages or metrics.
type canary struct {
	name  string
	value string
}

// forms returns the secret in all usual encodings. In base64 the encoding depends on the
// number of bytes before the secret.
func (c canary) forms() []string {
	out := []string{c.value, hex.EncodeToString([]byte(c.value)), strings.ToUpper(hex.EncodeToString([]byte(c.value)))}
	for before := range 3 {
		padded := strings.Repeat("x", before) + c.value
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString([]byte(padded))
			out = append(out, text[(before*4+2)/3+1:len(text)-2]) // without characters that depend on neighbouring bytes
		}
	}
	return append(out, strings.Trim(fmt.Sprintf("%d", []byte(c.value)), "[]")) // the format of %v
}

// A sweep collects logs, pages and other output, and searches them for canaries.
type sweep struct {
	canaries []canary
	found    map[string]string // by place
}

func newSweep(canaries ...canary) *sweep { return &sweep{canaries, make(map[string]string)} }

// secret returns a new canary.
func (s *sweep) secret(name string) string {
	c := canary{name, "canary-" + strings.ReplaceAll(name, " ", "-") + "-7f3a9c51d2e8"}
	s.canaries = append(s.canaries, c)
	return c.value
}

func (s *sweep) add(where, text string) { s.found[where] += text }

// file adds the content of a file.
func (s *sweep) file(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.add(path, string(text))
}

// get adds a page with its headers. Of an endless page it adds the beginning.
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
	response, err := client.Do(r)
	if err != nil && ctx.Err() != nil {
		return 0, "" // no response in time: only the request matters
	}
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	s.add(url, fmt.Sprint(response.Header)+string(text))
	return response.StatusCode, string(text)
}

// process adds what other users of the machine can see of a process.
func (s *sweep) process(t *testing.T, pid int) {
	t.Helper()
	if runtime.GOOS == "linux" {
		s.file(t, "/proc/"+strconv.Itoa(pid)+"/cmdline")
	}
}

// debug adds the pprof pages of a process.
func (s *sweep) debug(t *testing.T, addr string) {
	t.Helper()
	for _, page := range []string{"", "cmdline", "goroutine?debug=2", "heap?debug=1", "allocs?debug=1", "threadcreate?debug=1", "symbol", "mutex?debug=1"} {
		if status, _ := s.get(t, "http://"+addr+"/debug/pprof/"+page, nil); status != http.StatusOK {
			t.Errorf("/debug/pprof/%s: status %d", page, status)
		}
	}
}

// panics makes a process print all stacks, as a panic does, and adds its output.
func (s *sweep) panics(t *testing.T, p *process) {
	t.Helper()
	p.signal(t, quitSignal)
	if status := p.exit(t); status == 0 {
		t.Errorf("SIGQUIT: exit status %d", status)
	}
	if output := p.output(t); !strings.Contains(output, "goroutine 1") {
		t.Errorf("no stacks in the output: %s", output)
	}
	s.file(t, p.Launch.Log)
}

// traces starts a collector of spans, and returns the environment of a process that sends
// spans to it, and a function that waits for spans and adds them.
func (s *sweep) traces(t *testing.T) (env []string, collect func()) {
	t.Helper()
	var mu sync.Mutex
	var spans strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // a part is enough
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprint(&spans, r.Header, string(text)) // never fails
	}))
	t.Cleanup(collector.Close)
	env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_BSP_SCHEDULE_DELAY=100"}
	return env, func() {
		t.Helper()
		eventually(t, "spans are received", func() error {
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

// clean searches everything for the canaries.
func (s *sweep) clean(t *testing.T) {
	t.Helper()
	if len(s.found) == 0 || len(s.canaries) == 0 {
		t.Fatal("nothing was collected, or there are no canaries")
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

// inFile writes a secret to a file with mode 0600.
func inFile(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCanariesAreSeen: a canary is found in every encoding.
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
			t.Errorf("%s: not found in %q", name, text)
		}
	}
}
