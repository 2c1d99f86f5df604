package doctor

import (
	"fmt"
	"math"
	"time"
)

// A clockSample is a reading of a manager's clocks, taken at an unknown time between two readings
// of the local clock.
type clockSample struct {
	before, after time.Time // with monotonic readings
	wall          time.Time
	monotonic     time.Duration
}

// A span is an interval that contains a value.
type span struct{ least, most float64 }

// rateOf bounds the rate of a manager's monotonic clock, in its seconds per local second. It
// compares two distant samples with short round trips. It returns false without two samples.
//
// Between the readings i and j the manager's clock advanced by m. The local clock advanced by at
// least before(j) - after(i), and at most after(j) - before(i).
func rateOf(samples []clockSample) (span, bool) {
	if len(samples) < 2 {
		return span{}, false
	}
	third := max(1, len(samples)/3)
	first, last := tightest(samples[:third]), tightest(samples[len(samples)-third:])
	m := (last.monotonic - first.monotonic).Seconds()
	least, most := last.before.Sub(first.after).Seconds(), last.after.Sub(first.before).Seconds()
	if least <= 0 || m < 0 {
		return span{}, false // the manager restarted, or round trips exceed the interval
	}
	return span{m / most, m / least}, true
}

func tightest(samples []clockSample) clockSample {
	best := samples[0]
	for _, s := range samples[1:] {
		if s.after.Sub(s.before) < best.after.Sub(best.before) {
			best = s
		}
	}
	return best
}

// offsetOf bounds the offset of a manager's wall clock from the local one, in seconds.
func offsetOf(samples []clockSample) (span, bool) {
	if len(samples) == 0 {
		return span{}, false
	}
	s := tightest(samples)
	// Round removes the monotonic reading, so that Sub uses the wall clock.
	return span{s.wall.Sub(s.after.Round(0)).Seconds(), s.wall.Sub(s.before.Round(0)).Seconds()}, true
}

func (s span) middle() float64 { return (s.least + s.most) / 2 }

func (s span) minus(o span) span { return span{s.least - o.most, s.most - o.least} }

func (s span) over(o span) span { return span{s.least / o.most, s.most / o.least} }

// away is the minimum distance of the value from zero.
func (s span) away() float64 { return max(0, s.least, -s.most) }

// A clockPair is two clocks, of which the first is faster, or ahead.
type clockPair struct {
	a, b string
	gap  span
}

const thisComputer = "this computer"

func diagnoseClocks(e *exam) []finding {
	names, rates, offsets := []string{thisComputer}, []span{{1, 1}}, []span{{0, 0}}
	var out []finding
	epsilon, drift := time.Duration(0), driftOf(e)
	for _, m := range e.managers {
		if m.err != nil {
			continue
		}
		rate, ok := rateOf(m.samples)
		offset, _ := offsetOf(m.samples)
		if !ok {
			out = append(out, finding{"clock", m.addr, skipped, "its clocks are unknown", "It is older than this command, or has just restarted."})
			continue
		}
		names, rates, offsets = append(names, m.addr), append(rates, rate), append(offsets, offset)
		if c := time.Duration(m.status.GetClocks().GetEpsilon()); c > 0 && (epsilon == 0 || c < epsilon) {
			epsilon = c
		}
	}
	if len(names) == 1 {
		return out
	}
	return append(out, diagnoseRates(names, rates, drift), diagnoseWalls(names, offsets, epsilon))
}

// driftOf is the smallest configured drift bound.
func driftOf(e *exam) float64 {
	drift := math.Inf(1)
	for _, m := range e.managers {
		if d := m.status.GetClocks().GetDrift(); d >= 1 {
			drift = min(drift, d)
		}
	}
	for _, s := range e.spaces {
		if d := s.config.Drift; d >= 1 {
			drift = min(drift, d)
		}
	}
	return drift
}

// widest returns the two clocks with the largest gap, according to measure.
func widest(names []string, values []span, gap func(a, b span) span, measure func(span) float64) clockPair {
	var most clockPair
	for i := range values {
		for j := range values {
			if g := gap(values[i], values[j]); i != j && (most.a == "" || measure(g) > measure(most.gap)) {
				most = clockPair{names[i], names[j], g}
			}
		}
	}
	return most
}

func diagnoseRates(names []string, rates []span, drift float64) finding {
	p := widest(names, rates, span.over, span.middle)
	sure := max(0, p.gap.least-1)
	text := fmt.Sprintf("the clock of %s runs %.3f %% faster than that of %s (%.3f %% to %.3f %%); the bound is %.0f %%",
		p.a, 100*(p.gap.middle()-1), p.b, 100*sure, 100*(p.gap.most-1), 100*(drift-1))
	f := finding{"rates", "", Fine, text, ""}
	switch {
	case p.gap.least > drift:
		f.Verdict, f.Advice = Wrong, "Two servers may own one key. Find the wrong clock (a paused or throttled virtual machine, a broken clock source) and stop its computer before you continue."
	case sure > (drift-1)/2:
		f.Verdict, f.Advice = Hint, "More than half of the drift bound is used. Check the clock sources of both, or raise --drift."
	case p.gap.most > drift:
		f.Verdict, f.Advice = Hint, "Responses are too slow for an exact measurement: measure longer with --for."
	}
	return f
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// synchronizedOffset is far above the offset of synchronized clocks.
const synchronizedOffset = time.Second

func diagnoseWalls(names []string, offsets []span, epsilon time.Duration) finding {
	p := widest(names, offsets, span.minus, span.middle)
	f := finding{"walls", "", Fine, fmt.Sprintf("the wall clock of %s is %s ahead of that of %s, give or take %s", p.a,
		briefer(inSeconds(max(0, p.gap.middle()))), p.b, briefer(inSeconds((p.gap.most-p.gap.least)/2))), ""}
	if epsilon > 0 {
		// Only the managers' wall clocks matter for the election, not the local one.
		own := widest(names[1:], offsets[1:], span.minus, span.middle)
		if own.a != "" && own.gap.away() > epsilon.Seconds() {
			f.Verdict = Wrong
			f.Text = fmt.Sprintf("the wall clock of %s is %s ahead of that of %s, and the leader election tolerates only %v", own.a, briefer(inSeconds(own.gap.middle())), own.b, epsilon)
			f.Advice = "Synchronize the clocks (chrony, ntpd), or raise --epsilon on all managers."
			return f
		}
	}
	if p.gap.away() > synchronizedOffset.Seconds() {
		f.Verdict, f.Advice = Hint, "Leases do not depend on wall clocks, but times in logs and in the journal do: synchronize the clocks (chrony, ntpd)."
	}
	return f
}
