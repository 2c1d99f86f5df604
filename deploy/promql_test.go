package deploy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A selector is a metric in an expression, with its label matchers.
type selector struct {
	metric   string
	matchers [][3]string // label, operator, value
}

// A query is the names in a PromQL expression.
type query struct {
	selectors []selector
	labels    []string // in by, without, on, ignoring, group_left and group_right
	by        []string // in by: the only labels of the result
	problem   string
}

var (
	tokens = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\$?[A-Za-z_:][A-Za-z0-9_:]*|\d[\w.]*|=~|!~|!=|==|>=|<=|[-+*/%^<>=(){}\[\],]|\s+|.`)
	word   = regexp.MustCompile(`^[A-Za-z_:][A-Za-z0-9_:]*$`)

	grouping  = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	operators = []string{"and", "or", "unless", "bool", "offset"}
	functions = []string{"sum", "max", "min", "rate", "increase", "absent", "histogram_quantile"}
)

// parse finds the names in an expression, and some errors: unmatched parentheses, and unknown
// functions and tokens.
func parse(expr string) (q query) {
	var all []string
	for _, t := range tokens.FindAllString(expr, -1) {
		if strings.TrimSpace(t) != "" {
			all = append(all, t)
		}
	}
	at := func(i int) string {
		if i < len(all) {
			return all[i]
		}
		return ""
	}
	var open []string
	pairs := map[string]string{")": "(", "}": "{", "]": "["}
	for i := 0; i < len(all); i++ {
		switch t := all[i]; {
		case t == "(" || t == "{" || t == "[":
			open = append(open, t)
		case pairs[t] != "":
			if len(open) == 0 || open[len(open)-1] != pairs[t] {
				q.problem = fmt.Sprintf("%q at %d is unmatched", t, i)
				return q
			}
			open = open[:len(open)-1]
		case slices.Contains(grouping, t) && at(i+1) == "(":
			for i += 2; i < len(all) && all[i] != ")"; i++ {
				if all[i] != "," {
					q.labels = append(q.labels, all[i])
				}
				if all[i] != "," && t == "by" {
					q.by = append(q.by, all[i])
				}
			}
		case !word.MatchString(t) || slices.Contains(operators, t):
			if !regexp.MustCompile(`^(\d[\w.]*|[-+*/%^<>=,]|==|!=|>=|<=|\$__rate_interval|and|or|unless|bool|offset)$`).MatchString(t) {
				q.problem = fmt.Sprintf("unknown token %q", t)
				return q
			}
		case at(i+1) == "(" || slices.Contains(grouping, at(i+1)):
			if !slices.Contains(functions, t) {
				q.problem = fmt.Sprintf("unknown function %s: add it to the test if it exists", t)
				return q
			}
		default:
			s := selector{metric: t}
			if at(i+1) == "{" {
				for i += 2; i < len(all) && all[i] != "}"; i++ {
					if all[i] == "," {
						continue
					}
					s.matchers = append(s.matchers, [3]string{all[i], at(i + 1), strings.Trim(at(i+2), `"`)})
					i += 2
				}
			}
			q.selectors = append(q.selectors, s)
		}
	}
	if len(open) > 0 {
		q.problem = fmt.Sprintf("%q is never closed", open[len(open)-1])
	}
	return q
}

// check returns the errors in the names of an expression.
func (e exported) check(expr string) (problems []string) {
	q := parse(expr)
	if q.problem != "" {
		return []string{expr + ": " + q.problem}
	}
	if len(q.selectors) == 0 {
		return []string{expr + ": it names no metric"}
	}
	for _, s := range q.selectors {
		labels, ok := e[s.metric]
		if !ok {
			problems = append(problems, "there is no metric "+s.metric)
			continue
		}
		for _, m := range s.matchers {
			problems = append(problems, missing(s.metric, labels, m)...)
		}
	}
	for _, l := range q.labels {
		if !e.has(expr, l) {
			problems = append(problems, fmt.Sprintf("no metric of %s has the label %s", expr, l))
		}
	}
	return problems
}

// missing returns the label, or its values, that a metric does not have.
func missing(metric string, labels map[string]map[string]bool, m [3]string) (problems []string) {
	values, ok := labels[m[0]]
	switch {
	case !ok:
		return []string{fmt.Sprintf("%s has no label %s", metric, m[0])}
	case strings.HasPrefix(m[2], "$"), strings.Contains(m[2], "*"): // a variable
		return nil
	}
	for value := range strings.SplitSeq(m[2], "|") {
		if !values[value] {
			problems = append(problems, fmt.Sprintf("%s never has %s=%q", metric, m[0], value))
		}
	}
	return problems
}

// has reports whether the result of an expression has a label.
func (e exported) has(expr, label string) bool {
	q := parse(expr)
	if len(q.by) > 0 && !slices.Contains(q.by, label) {
		return false
	}
	return slices.ContainsFunc(q.selectors, func(s selector) bool { return e[s.metric][label] != nil })
}

// TestParse: errors are found.
func TestParse(t *testing.T) {
	all := exported{
		"up":               {"job": {"": true}, "kind": {"a": true, "b": true}},
		"took_seconds_sum": {"job": {"": true}},
	}
	for expr, want := range map[string]string{
		`sum by (job) (rate(up{kind="a"}[5m])) > 0.5`:       "",
		`max(up{kind=~"a|b"}) - on (job) group_right () up`: "",
		`sum by (job) (rate(up{kind="c"}[5m]))`:             `up never has kind="c"`,
		`up{kind=~"a|c"}`:                                   `up never has kind="c"`,
		`up{sort="a"}`:                                      "up has no label sort",
		`sum by (kind) (took_seconds_sum)`:                  "no metric of sum by (kind) (took_seconds_sum) has the label kind",
		`down == 0`:                                         "there is no metric down",
		`rate(up[5m]`:                                       `rate(up[5m]: "(" is never closed`,
		`up)`:                                               `up): ")" at 1 is unmatched`,
		`median(up)`:                                        "median(up): unknown function median: add it to the test if it exists",
		`up & up`:                                           `up & up: unknown token "&"`,
		`1`:                                                 "1: it names no metric",
	} {
		if got := strings.Join(all.check(expr), "; "); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}
