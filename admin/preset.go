package admin

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A Preset is a name for the times of a namespace. What they mean:
//
//	host lost         Lease x Drift      its keys have no owner for at most this long
//	managers down     Lease - Renew      owners do not notice a shorter outage of all managers, nor a failover
//	renewals lost     Lease / Renew - 2  owners tolerate this many in a row
//	load of a leader  1 / Renew          renewals per second and owner
//
// A longer Lease tolerates longer outages of managers and networks, and costs availability after the loss of a host. A
// crash of a supervised process ("leasehold run") costs milliseconds with any Lease. A shorter Renew tolerates longer
// outages with the same Lease, and costs messages. A Drift below the real ratio of the rates of two clocks is unsafe: two
// servers may own one key. A larger one delays expiry and failovers.
type Preset struct {
	Name         string
	Summary      string // what it is for
	Lease, Renew Seconds
	Drift        float64
}

// Presets returns all presets.
//
//   - default: a lost host costs 12 s; outages of 7.5 s are not noticed.
//   - steady is for servers under "leasehold run": outages of 55 s are not noticed, with half of the messages of default.
//     A lost host, or a crash without a supervisor, costs 72 s.
//   - fast: a lost host costs 3.6 s. Owners send five times the messages of default, and lose their leases if they or the
//     network pause for 2.5 s. A failover must be shorter: managers need a TTL of at most 1.6 s, better of 1 s.
//   - paper: the times of the paper on Centrifuge.
func Presets() []Preset {
	usual, paper := protocol.DefaultTiming(), protocol.PaperTiming()
	return []Preset{
		preset("default", "a lost host costs 12 s", usual),
		preset("steady", "for servers under 'leasehold run'; a lost host costs 72 s", protocol.Timing{Lease: time.Minute, Renew: 5 * time.Second, Drift: usual.Drift}),
		preset("fast", "a lost host costs 3.6 s; needs managers with --ttl 1s", protocol.Timing{Lease: 3 * time.Second, Renew: 500 * time.Millisecond, Drift: usual.Drift}),
		preset("paper", "as in Centrifuge", paper),
	}
}

func preset(name, summary string, t protocol.Timing) Preset {
	return Preset{name, summary, Seconds(t.Lease), Seconds(t.Renew), float64(t.Drift)}
}

// PresetNames returns the names of all presets.
func PresetNames() []string { return convert(Presets(), func(p Preset) string { return p.Name }) }

// ApplyPreset sets the times of a namespace to those of a preset.
func (n *Namespace) ApplyPreset(name string) error {
	all := Presets()
	i := slices.IndexFunc(all, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return leasehold.Errorf("preset", leasehold.ErrInvalid, name, "want one of %s", strings.Join(PresetNames(), ", "))
	}
	n.Lease, n.Renew, n.Drift = all[i].Lease, all[i].Renew, all[i].Drift
	return nil
}
