package explorer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A trail is the path to a state: the choice of the last step, and the trail before it.
type trail struct {
	before *trail
	choice uint16
}

func (t *trail) choices() []uint16 {
	var out []uint16
	for ; t != nil; t = t.before {
		out = append(out, t.choice)
	}
	slices.Reverse(out)
	return out
}

// text formats a trail for --replay: the number of steps, and after the colon the choices other than 0, such
// as 12:3=5,7=1.
func (t *trail) text() string {
	choices := t.choices()
	var detours []string
	for i, c := range choices {
		if c != 0 {
			detours = append(detours, fmt.Sprintf("%d=%d", i, c))
		}
	}
	return fmt.Sprintf("%d:%s", len(choices), strings.Join(detours, ","))
}

func parseTrail(text string) ([]uint16, error) {
	bad := fmt.Errorf("%q is not a path to a violation: copy it from the report of the violation, such as 12:3=5,7=1", text)
	length, detours, found := strings.Cut(text, ":")
	n, err := strconv.Atoi(length)
	if !found || err != nil || n < 0 || n > 255 {
		return nil, bad
	}
	choices := make([]uint16, n)
	for pair := range strings.SplitSeq(detours, ",") {
		if pair == "" {
			continue
		}
		at, choice, _ := strings.Cut(pair, "=")
		i, err1 := strconv.Atoi(at)
		c, err2 := strconv.ParseUint(choice, 10, 16)
		if err1 != nil || err2 != nil || i < 0 || i >= n {
			return nil, bad
		}
		choices[i] = uint16(c)
	}
	return choices, nil
}

// Replay repeats a path that was printed with a violation, in the same scenario, and returns the violation at
// its end. It is an error if there is none.
func Replay[S State[S]](s Scenario[S], path string) (*Violation, error) {
	choices, err := parseTrail(path)
	if err != nil {
		return nil, err
	}
	st, err := s.Begin()
	if err != nil {
		return nil, err
	}
	var lines []string
	for i, choice := range choices {
		var next S
		var what func() string
		n := uint16(0)
		st.Each(func(s S, w func() string) {
			if n == choice {
				next, what = s, w
			}
			n++
		})
		if what == nil {
			return nil, fmt.Errorf("step %d has %d choices, choice %d does not exist: the code, the scenario or its limits have changed", i, n, choice)
		}
		st = next
		lines = append(lines, st.Line(what()))
	}
	if st.Broken() == nil {
		return nil, fmt.Errorf("after %d steps there is no violation: the code has changed", len(choices))
	}
	v := *st.Broken()
	v.Path, v.Replay = lines, path
	return &v, nil
}
