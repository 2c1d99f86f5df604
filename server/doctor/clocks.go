package doctor

import (
	"fmt"
	"math"
	"time"
)

// A clockSample is a reading of a manager's clocks. It was made between two readings of
// our own, and nobody knows when.
type clockSample struct {
	before, after time.Time // with monotonic readings
	wall          time.Time
	monotonic     time.Duration
}

// A span is what a value is at least and at most.
type span struct{ least, most float64 }

// rateOf bounds how fast a manager's monotonic clock runs, in its seconds per second of
// ours. It compares two samples that are far apart; the surer they are, the better. It
// reports false if there are not two.
//
// Between the readings i and j the manager's clock went on by m. Ours went on by at
// least before(j) - after(i), and at most after(j) - before(i).
func rateOf(samples []clockSample) (span, bool) {
	if len(samples) < 2 {
		return span{}, false
	}
	third := max(1, len(samples)/3)
	first, last := surest(samples[:third]), surest(samples[len(samples)-third:])
	m := (last.monotonic - first.monotonic).Seconds()
	least, most := last.before.Sub(first.after).Seconds(), last.after.Sub(first.before).Seconds()
	if least <= 0 || m < 0 {
		return span{}, false // it was restarted, or it answers more slowly than we ask
	}
	return span{m / most, m / least}, true
}

func surest(samples []clockSample) clockSample {
	best := samples[0]
	for _, s := range samples[1:] {
		if s.after.Sub(s.before) < best.after.Sub(best.before) {
			best = s
		}
	}
	return best
}

// offsetOf bounds by how many seconds a manager's wall clock is ahead of ours.
func offsetOf(samples []clockSample) (span, bool) {
	if len(samples) == 0 {
		return span{}, false
	}
	s := surest(samples)
	// Round takes the monotonic reading off, which is of no use here.
	return span{s.wall.Sub(s.after.Round(0)).Seconds(), s.wall.Sub(s.before.Round(0)).Seconds()}, true
}

func (s span) middle() float64 { return (s.least + s.most) / 2 }

func (s span) minus(o span) span { return span{s.least - o.most, s.most - o.least} }

func (s span) over(o span) span { return span{s.least / o.most, s.most / o.least} }

// away is how far from zero a value is for sure.
func (s span) away() float64 { return max(0, s.least, -s.most) }

// A clockPair is two clocks of which the second is slower, or behind.
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
			out = append(out, finding{"clock", m.addr, skipped, "its clocks are not known", "It is older than this command, or has just been restarted."})
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

// driftOf is the narrowest drift bound that anything relies on.
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

// widest returns the two clocks that differ most, by a measure of their gap.
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
	text := fmt.Sprintf("that of %s runs %.3f %% faster than that of %s (%.3f %% to %.3f %%); the bound is %.0f %%",
		p.a, 100*(p.gap.middle()-1), p.b, 100*sure, 100*(p.gap.most-1), 100*(drift-1))
	f := finding{"rates", "", Fine, text, ""}
	switch {
	case p.gap.least > drift:
		f.Verdict, f.Advice = Wrong, "Two servers may hold one key. Find out which clock is wrong (a virtual machine that is paused or throttled, a broken clock source), stop it, and only then go on."
	case sure > (drift-1)/2:
		f.Verdict, f.Advice = Hint, "More than half of the drift bound is used up. Look at the clock source of both, or raise --drift."
	case p.gap.most > drift:
		f.Verdict, f.Advice = Hint, "Answers came too slowly to be sure: look for longer with --for."
	}
	return f
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// usualOffset is what time synchronisation stays far below.
const usualOffset = time.Second

func diagnoseWalls(names []string, offsets []span, epsilon time.Duration) finding {
	p := widest(names, offsets, span.minus, span.middle)
	f := finding{"walls", "", Fine, fmt.Sprintf("the wall clock of %s is %s ahead of that of %s, give or take %s", p.a,
		briefer(inSeconds(max(0, p.gap.middle()))), p.b, briefer(inSeconds((p.gap.most-p.gap.least)/2))), ""}
	if epsilon > 0 {
		// Only managers agree by their wall clocks; ours is of no account.
		own := widest(names[1:], offsets[1:], span.minus, span.middle)
		if own.a != "" && own.gap.away() > epsilon.Seconds() {
			f.Verdict = Wrong
			f.Text = fmt.Sprintf("the wall clock of %s is %s ahead of that of %s, and they agree on a leader only within %v", own.a, briefer(inSeconds(own.gap.middle())), own.b, epsilon)
			f.Advice = "Synchronise them (chrony, ntpd), or raise --epsilon on all managers."
			return f
		}
	}
	if p.gap.away() > usualOffset.Seconds() {
		f.Verdict, f.Advice = Hint, "No lease depends on it, but times in logs and in the journal do: synchronise them (chrony, ntpd)."
	}
	return f
}
