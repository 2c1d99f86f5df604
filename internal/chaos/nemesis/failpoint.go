package nemesis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/chaos/cluster"
)

// passedBy says who passes the failpoints of which packages.
var passedBy = map[string][]cluster.Role{
	"manager": {cluster.Manager}, "etcd": {cluster.Manager}, "flease": {cluster.Manager}, "diskless": {cluster.Manager},
	"owner": {cluster.Owner}, "mover": {cluster.Owner}, "lookup": {cluster.Caller},
}

// fail kills a process, and starts another that dies or stands still at a failpoint, the
// first time that it gets there or a later one. When the strike is over it is replaced by
// one that does not.
func fail(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
	if len(n.Points) == 0 {
		return "", nil, nil
	}
	point := n.Points[s.Pick%uint64(len(n.Points))]
	pass := func(ctx context.Context, n *Nemesis, s Strike) []*cluster.Member {
		return slices.DeleteFunc(anybody(ctx, n, s), func(m *cluster.Member) bool { return !slices.Contains(roles(point), m.Role) })
	}
	victims, heal, err := processBy(mortal(pass), 1, func(s Strike, m *cluster.Member) error {
		m.Kill()
		m.Arm(armed(point, s))
		return m.Start()
	}, func(m *cluster.Member) error {
		m.Kill()
		return m.Start()
	})(ctx, n, s)
	if victims != "" {
		victims += " at " + armed(point, s)
	}
	return victims, heal, err
}

// roles says who passes a point.
func roles(point string) []cluster.Role {
	part, _, _ := strings.Cut(point, "/")
	return passedBy[part]
}

// armed is what a process is told: to die, or to stand still for up to as long as the strike
// lasts.
func armed(point string, s Strike) string {
	after := s.Pick >> 32 % 20
	if s.How < 0.5 {
		return fmt.Sprintf("%s=kill:after=%d", point, after)
	}
	return fmt.Sprintf("%s=pause:for=%v:after=%d", point, time.Duration((2*s.How-1)*float64(s.For)).Round(time.Millisecond), after)
}
