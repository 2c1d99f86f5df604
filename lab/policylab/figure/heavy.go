package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"

	"github.com/leasehold-dev/leasehold/lab/policylab"
)

// heavy is how many times the mean a server must have at some time to be drawn:
// in PRS those above 40 %, where the mean is 20 %.
const heavy = 2

// maxLines bounds the servers in a panel: beyond that, lines hide each other,
// and files grow.
const maxLines = 60

// A server is one owner, and the most that it ever had to do.
type server struct {
	index int
	peak  float32
}

// heavilyLoaded is figure 10 of PRS: the load of all servers that are heavily
// loaded at any time, or of the heaviest if there are too many.
func heavilyLoaded(r *policylab.Result, c color.Color, meanLoad float64) *plot.Plot {
	limit := float32(heavy * meanLoad)
	servers := heaviest(r.Loads, limit)
	p := newPanel("", "load, %")
	p.Title.Text = fmt.Sprintf("%s: servers above %.0f %%: %d at first, %d at last", r.Policy, 100*limit,
		above(r.Loads[0], limit), above(r.Loads[len(r.Loads)-1], limit))
	if all := len(servers); all > maxLines {
		p.Title.Text += fmt.Sprintf("\n(the %d heaviest of %d)", maxLines, all)
		servers = servers[:maxLines]
	}
	p.Add(newLine(r, func(int) float64 { return 100 * meanLoad }, color.Gray{0x80}, 1))
	p.Y.Max = 100 * heavy * meanLoad
	for _, s := range servers {
		p.Add(newLine(r, func(period int) float64 { return s.percent(r.Loads[period]) }, c, 0.5))
	}
	return p
}

// heaviest returns the servers that are above limit at any time, the heaviest
// first.
func heaviest(loads [][]float32, limit float32) []server {
	peaks := make([]float32, len(loads[len(loads)-1]))
	for _, busy := range loads {
		for i, b := range busy {
			peaks[i] = max(peaks[i], b)
		}
	}
	var servers []server
	for i, peak := range peaks {
		if peak > limit {
			servers = append(servers, server{i, peak})
		}
	}
	slices.SortStableFunc(servers, func(a, b server) int { return -cmp.Compare(a.peak, b.peak) })
	return servers
}

func above(busy []float32, limit float32) int {
	n := 0
	for _, b := range busy {
		if b > limit {
			n++
		}
	}
	return n
}

// percent is how busy the server is; one that has not joined yet is idle.
func (s server) percent(busy []float32) float64 {
	if s.index >= len(busy) {
		return 0
	}
	return 100 * float64(busy[s.index])
}

// sameHeight makes panels comparable. No server does more than 100 %: what is
// beyond is left out, so that one hot key does not flatten all the rest.
func sameHeight(panels []*plot.Plot) {
	top := 0.0
	for _, p := range panels {
		top = max(top, p.Y.Max)
	}
	for _, p := range panels {
		p.Y.Min, p.Y.Max = 0, min(1.05*top, 100)
	}
}
