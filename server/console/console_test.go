package console

import (
	"bytes"
	"testing"
)

func TestNoColorsIfNotWanted(t *testing.T) {
	for name, env := range map[string][2]string{
		"no terminal": {"TERM", "xterm-256color"},
		"NO_COLOR":    {"NO_COLOR", "any value"},
		"dumb":        {"TERM", "dumb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CLICOLOR_FORCE", "")
			t.Setenv(env[0], env[1])
			var out bytes.Buffer
			s := New(&out)
			if _, err := s.Write([]byte(Good("fine"))); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != "fine" || s.Terminal || s.Width != UsualWidth {
				t.Errorf("got %q, terminal %t, width %d", got, s.Terminal, s.Width)
			}
		})
	}
}
