//go:build failpoints

package failpoint

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// An action is what happens at a point.
type action string

const (
	nothing action = ""
	kill    action = "kill"
	pause   action = "pause"
	fail    action = "error"
	drop    action = "drop"
)

// defaultPause is the duration of a pause without :for.
const defaultPause = time.Second

// A trigger is the action of an armed point.
type trigger struct {
	action action
	after  int // passes to skip
	times  int // passes to act at; 0: all
	pause  time.Duration
	call   func() // if set, runs instead of action
	seen   int    // passes so far
}

// due counts a pass, and reports whether to act at it.
func (t *trigger) due() bool {
	t.seen++
	return t.seen > t.after && (t.times == 0 || t.seen <= t.after+t.times)
}

// parse parses "name=action:option=value;...".
func parse(text string) (map[string]*trigger, error) {
	all := make(map[string]*trigger)
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, spec, _ := strings.Cut(part, "=")
		p := find(name)
		if p == nil {
			return nil, invalid(part, "unknown failpoint %q; the failpoints are %s", name, strings.Join(Names(), ", "))
		}
		if all[name] != nil {
			return nil, invalid(part, "duplicate failpoint %s", name)
		}
		t, err := p.trigger(part, strings.Split(spec, ":"))
		if err != nil {
			return nil, err
		}
		all[name] = t
	}
	return all, nil
}

// trigger parses an action and its options.
func (p *Point) trigger(part string, words []string) (*trigger, error) {
	t := &trigger{action: action(words[0]), times: 1, pause: defaultPause}
	if can := p.actions(); !slices.Contains(can, t.action) {
		return nil, invalid(part, "%s does not support %q; it supports %v", p.Name, words[0], can)
	}
	for _, option := range words[1:] {
		key, value, _ := strings.Cut(option, "=")
		set, known := options[key]
		if !known || key == "for" && t.action != pause {
			return nil, invalid(part, "unknown option %q of %q; the options are %s, and for= is for pauses only", key, t.action, strings.Join(slices.Sorted(maps.Keys(options)), ", "))
		}
		if !set(t, value) {
			return nil, invalid(part, "invalid value %q of %s: want a number from 0, or a duration such as 500ms for for=", value, key)
		}
	}
	return t, nil
}

// options set a field of a trigger. They report false if the value is invalid.
var options = map[string]func(*trigger, string) bool{
	"after": func(t *trigger, text string) bool { return number(text, &t.after) },
	"times": func(t *trigger, text string) bool { return number(text, &t.times) },
	"for": func(t *trigger, text string) bool {
		d, err := time.ParseDuration(text)
		t.pause = d
		return err == nil && d >= 0
	},
}

func number(text string, into *int) bool {
	n, err := strconv.Atoi(text)
	*into = n
	return err == nil && n >= 0
}

func invalid(part, format string, args ...any) error {
	return leasehold.Errorf("arm failpoints", leasehold.ErrInvalid, part, format, args...)
}
