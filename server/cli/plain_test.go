package cli

import (
	"log/slog"
	"strings"
	"testing"
)

func TestPlainText(t *testing.T) {
	for _, test := range []struct {
		addr              string
		secured, insecure bool
		warn, refused     bool
	}{
		{addr: "127.0.0.1:7400"},
		{addr: "localhost:7400"},
		{addr: "[::1]:7400"},
		{addr: "127.0.0.1:7400", insecure: true},
		{addr: "10.0.0.1:7400", refused: true},
		{addr: ":7400", refused: true},
		{addr: "m1:7400", refused: true},
		{addr: "10.0.0.1:7400", insecure: true, warn: true},
		{addr: ":7400", insecure: true, warn: true},
		{addr: "10.0.0.1:7400", secured: true},
		{addr: "10.0.0.1:7400", secured: true, insecure: true},
	} {
		s := Security{Insecure: test.insecure, origin: func(flag string) string { return "--" + flag }}
		err := s.Expose("listen", test.secured, test.addr)
		if warn := len(s.Exposed) > 0; warn != test.warn || (err != nil) != test.refused {
			t.Errorf("%+v: warns of %v, %v", test, s.Exposed, err)
		}
		if test.refused && !strings.Contains(err.Error(), "--listen "+test.addr) {
			t.Errorf("%+v: the error does not contain the flag: %v", test, err)
		}
	}
}

// TestWarnOfPlainText: one log line warns of all plaintext addresses.
func TestWarnOfPlainText(t *testing.T) {
	var log strings.Builder
	WarnOfPlainText([]string{":7400", "m2:7400"}, slog.New(slog.NewTextHandler(&log, nil)))
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `addresses=":7400, m2:7400"`) || !strings.Contains(got, "level=WARN") {
		t.Error(got)
	}
	log.Reset()
	if WarnOfPlainText(nil, slog.New(slog.NewTextHandler(&log, nil))); log.String() != "" {
		t.Error(log.String())
	}
}
