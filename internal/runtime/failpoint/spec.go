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

// usualPause is how long a pause takes that does not say.
const usualPause = time.Second

// A trigger is what a point is armed with.
type trigger struct {
	action action
	after  int           // times that it passes before
	times  int           // times that it happens; 0 is always
	pause  time.Duration // how long
	call   func()        // instead of all that, if set
	seen   int
}

// due counts a pass, and reports whether it happens this time.
func (t *trigger) due() bool {
	t.seen++
	return t.seen > t.after && (t.times == 0 || t.seen <= t.after+t.times)
}

// parse reads "name=action:option=value;...".
func parse(text string) (map[string]*trigger, error) {
	all := make(map[string]*trigger)
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, does, _ := strings.Cut(part, "=")
		p := find(name)
		if p == nil {
			return nil, refuse(part, "there is no failpoint %q: there are %s", name, strings.Join(Names(), ", "))
		}
		if all[name] != nil {
			return nil, refuse(part, "%s is armed twice", name)
		}
		t, err := p.trigger(part, strings.Split(does, ":"))
		if err != nil {
			return nil, err
		}
		all[name] = t
	}
	return all, nil
}

// trigger reads an action and its options.
func (p *Point) trigger(part string, words []string) (*trigger, error) {
	t := &trigger{action: action(words[0]), times: 1, pause: usualPause}
	if can := p.actions(); !slices.Contains(can, t.action) {
		return nil, refuse(part, "%s cannot %q: it can %v", p.Name, words[0], can)
	}
	for _, option := range words[1:] {
		key, value, _ := strings.Cut(option, "=")
		set, known := options[key]
		if !known || key == "for" && t.action != pause {
			return nil, refuse(part, "there is no option %q for %q: there are %s, and for= is for pauses", key, t.action, strings.Join(slices.Sorted(maps.Keys(options)), ", "))
		}
		if !set(t, value) {
			return nil, refuse(part, "%q is no value for %s: want a number from 0 on, or a time such as 500ms for for=", value, key)
		}
	}
	return t, nil
}

// options set what they are named after, and report false if the text makes no sense.
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

func refuse(part, format string, args ...any) error {
	return leasehold.Errorf("arm failpoints", leasehold.ErrInvalid, part, format, args...)
}
