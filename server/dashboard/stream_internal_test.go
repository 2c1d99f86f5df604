package dashboard

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A thinLine accepts 4 KiB a second, and no data after its deadline.
type thinLine struct {
	httptest.ResponseRecorder
	deadline time.Time
}

func (l *thinLine) SetReadDeadline(time.Time) error { return nil }

func (l *thinLine) SetWriteDeadline(at time.Time) error {
	l.deadline = at
	return nil
}

func (l *thinLine) Write(data []byte) (int, error) {
	time.Sleep(time.Duration(len(data)) * time.Second / 4096)
	if time.Now().After(l.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return len(data), nil
}

// TestThinLine: a large table reaches a slow viewer after minutes, as long as data flows.
func TestThinLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := &thinLine{ResponseRecorder: *httptest.NewRecorder()}
		out := &wireOut{to: line, control: http.NewResponseController(line)}
		out.begin(false)
		begun := time.Now()
		if err := out.write(&frame{body: func() any { return string(make([]byte, 1<<20)) }}); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took < 3*writePatience {
			t.Errorf("it took %v: the line is too fast for this test", took)
		}
	})
}
