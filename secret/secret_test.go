package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/leasehold-dev/leasehold/secret"
)

const canary = "correct-horse-battery-staple"

// outer has secrets in exported fields, whose methods formatters call, and in unexported fields, whose methods they do not call.
type outer struct {
	Open    secret.Text
	Pointer *secret.Text
	Many    []secret.Text
	Map     map[string]secret.Text
	hidden  secret.Text
	inner   struct{ deep secret.Text }
	any     any
}

func full() outer {
	s := secret.New(canary)
	o := outer{Open: s, Pointer: &s, Many: []secret.Text{s}, Map: map[string]secret.Text{"k": s}, hidden: s, any: s}
	o.inner.deep = s
	return o
}

// leaks reports whether a text contains the secret, plain or encoded.
func leaks(text string) bool {
	for _, form := range []string{
		canary, hex.EncodeToString([]byte(canary)), strings.ToUpper(hex.EncodeToString([]byte(canary))),
		base64.StdEncoding.EncodeToString([]byte(canary))[:32], strings.Trim(fmt.Sprintf("%d", []byte(canary)), "[]"),
	} {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

func TestVerbsDoNotReveal(t *testing.T) {
	o := full()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%T %[1]v", "%10s", "%b"} {
		for _, value := range []any{o, &o, o.Open, &o.Open, o.Many, o.Map, []any{o}} {
			if text := fmt.Sprintf(verb, value); leaks(text) {
				t.Errorf("%s of a %T: %s", verb, value, text)
			}
		}
	}
	if got := fmt.Sprintf("%s|%x|%#v", o.Open, o.Open, o.Open); got != "(secret)|(secret)|(secret)" {
		t.Errorf("got %s", got)
	}
	if got := fmt.Sprintf("%v|%s", secret.Text{}, secret.New("")); got != "|" {
		t.Errorf("the zero Text is formatted as %q", got)
	}
}

func TestLogsDoNotReveal(t *testing.T) {
	var out bytes.Buffer
	o := full()
	for _, handler := range []slog.Handler{
		slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil),
	} {
		log := slog.New(handler)
		log.Info("text", "secret", o.Open, "all", o, "pointer", &o, "many", o.Many)
		log.With("secret", o.Open).WithGroup("g").Error("error", "why", fmt.Errorf("bad %v: %w", o.Open, errors.New("x")))
	}
	if leaks(out.String()) || !strings.Contains(out.String(), "secret=(secret)") || !strings.Contains(out.String(), `"secret":"(secret)"`) {
		t.Error(out.String())
	}
}

func TestEncodingsDoNotReveal(t *testing.T) {
	o := full()
	for name, encode := range map[string]func(any) ([]byte, error){
		"json": json.Marshal,
		"yaml": yaml.Marshal,
		"xml":  xml.Marshal,
		"gob": func(v any) ([]byte, error) {
			var out bytes.Buffer
			err := gob.NewEncoder(&out).Encode(v)
			return out.Bytes(), err
		},
	} {
		for _, value := range []any{o.Open, struct{ Password secret.Text }{o.Open}} {
			text, err := encode(value)
			if leaks(string(text)) || err == nil && !strings.Contains(string(text), "(secret)") {
				t.Errorf("%s of a %T: %q, %v", name, value, text, err)
			}
		}
	}
}

// A panic prints its value, and cmp.Diff prints the differing values.
func TestPanicsAndDiffsDoNotReveal(t *testing.T) {
	o := full()
	func() {
		defer func() {
			if text := fmt.Sprint(recover()); leaks(text) {
				t.Error(text)
			}
		}()
		panic(fmt.Sprintf("%+v", o))
	}()
	if diff := cmp.Diff(o.Open, secret.New("another")); diff == "" || leaks(diff) {
		t.Error(diff)
	}
	if !cmp.Equal(o.Open, secret.New(canary)) {
		t.Error("equal secrets differ")
	}
}

func TestReveal(t *testing.T) {
	s := secret.New(canary)
	if s.Reveal() != canary || s.Len() != len(canary) || (secret.Text{}).Reveal() != "" || (secret.Text{}).Len() != 0 {
		t.Error("Reveal or Len returns a wrong value")
	}
	if s.Equal(secret.Text{}) || s.Equal(secret.New(canary+"!")) || !(secret.Text{}).Equal(secret.New("")) {
		t.Error("different secrets are equal, or equal ones differ")
	}
}
