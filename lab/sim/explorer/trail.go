package explorer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A trail is how a state was reached: the choice of the last step, and those before.
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

// text is a trail as people can copy it: how many steps, and after the colon those in
// which something else was chosen than what is usual, such as 12:3=5,7=1.
func (t *trail) text() string {
	choices := t.choices()
	var unusual []string
	for i, c := range choices {
		if c != 0 {
			unusual = append(unusual, fmt.Sprintf("%d=%d", i, c))
		}
	}
	return fmt.Sprintf("%d:%s", len(choices), strings.Join(unusual, ","))
}

func parseTrail(text string) ([]uint16, error) {
	bad := fmt.Errorf("%q is not the way to a violation: want what was printed with one, such as 12:3=5,7=1", text)
	length, unusual, found := strings.Cut(text, ":")
	n, err := strconv.Atoi(length)
	if !found || err != nil || n < 0 || n > 255 {
		return nil, bad
	}
	choices := make([]uint16, n)
	for pair := range strings.SplitSeq(unusual, ",") {
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

// Replay goes a way that was printed with a violation, in the scenario in which that was
// found, and returns the violation at its end. It is an error if there is none.
func Replay[S State[S]](s Scenario[S], way string) (*Violation, error) {
	choices, err := parseTrail(way)
	if err != nil {
		return nil, err
	}
	st, err := s.Begin()
	if err != nil {
		return nil, err
	}
	var path []string
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
			return nil, fmt.Errorf("step %d has %d choices, and not %d: the code, the scenario or what may happen is another", i, n, choice)
		}
		st = next
		path = append(path, st.Line(what()))
	}
	if st.Broken() == nil {
		return nil, fmt.Errorf("after %d steps nothing is violated: the code has changed", len(choices))
	}
	v := *st.Broken()
	v.Path, v.Replay = path, way
	return &v, nil
}
