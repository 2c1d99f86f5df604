package flease

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/mono"
)

// alarms is a heap of bids by when they want to be looked at, four children to
// a node. A bid is in it once at least if it has a time; entries that are out of
// date are dropped when they come up.
type alarms []alarm

type alarm struct {
	at  mono.Instant
	bid *bid
}

func (a *alarms) next() mono.Instant {
	if len(*a) == 0 {
		return mono.Never
	}
	return (*a)[0].at
}

func (a *alarms) push(e alarm) {
	h := append(*a, e)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if h[parent].at <= e.at {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
	*a = h
}

func (a *alarms) pop() alarm {
	h := *a
	top, last := h[0], h[len(h)-1]
	h[len(h)-1] = alarm{}
	h = h[:len(h)-1]
	*a = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= len(h) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(h)); c++ {
			if h[c].at < h[least].at {
				least = c
			}
		}
		if h[least].at >= last.at {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return top
}

// visits is a queue of cells, each with when it is to be looked at. All wait for
// the same time, so that it is in order by itself.
type visits struct {
	ring  []visit // its length is a power of two
	first int
	n     int
}

type visit struct {
	at   mono.Instant
	cell *cell
}

func (q *visits) next() mono.Instant {
	if q.n == 0 {
		return mono.Never
	}
	return q.ring[q.first].at
}

func (q *visits) push(v visit) {
	if q.n == len(q.ring) {
		grown := make([]visit, max(64, 2*len(q.ring)))
		for i := range q.n {
			grown[i] = q.ring[(q.first+i)&(len(q.ring)-1)]
		}
		q.ring, q.first = grown, 0
	}
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = v
	q.n++
}

func (q *visits) pop() *cell {
	c := q.ring[q.first].cell
	q.ring[q.first] = visit{}
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.n--
	return c
}

func (q *visits) clone(of func(*cell) *cell) visits {
	out := visits{ring: slices.Clone(q.ring), first: q.first, n: q.n}
	for i := range out.ring {
		if out.ring[i].cell != nil {
			out.ring[i].cell = of(out.ring[i].cell)
		}
	}
	return out
}
