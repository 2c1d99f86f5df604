package nemesis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
)

// passedBy are the roles and shapes that pass the failpoints of a package.
var passedBy = map[string]struct {
	roles  []cluster.Role
	shapes []cluster.Shape
}{
	"manager":    {[]cluster.Role{cluster.Manager, cluster.Server}, cluster.Shapes()},
	"store":      {[]cluster.Role{cluster.Manager}, []cluster.Shape{cluster.Etcd, cluster.External}},
	"etcd":       {[]cluster.Role{cluster.Manager}, []cluster.Shape{cluster.Etcd}},
	"flease":     {[]cluster.Role{cluster.Manager, cluster.Server}, []cluster.Shape{cluster.Flease, cluster.Embedded}},
	"memcatalog": {[]cluster.Role{cluster.Manager, cluster.Server}, []cluster.Shape{cluster.Flease, cluster.Embedded}},
	"owner":      {[]cluster.Role{cluster.Owner, cluster.Server}, cluster.Shapes()},
	"mover":      {[]cluster.Role{cluster.Owner, cluster.Server}, cluster.Shapes()},
	"link":       {[]cluster.Role{cluster.Owner, cluster.Server, cluster.Caller}, cluster.Shapes()},
	"lookup":     {[]cluster.Role{cluster.Caller}, cluster.Shapes()},
}

// Passed returns the failpoints that some process in a cluster of a shape passes.
func Passed(points []string, in cluster.Shape) []string {
	return slices.DeleteFunc(slices.Clone(points), func(point string) bool { return !slices.Contains(passedBy[part(point)].shapes, in) })
}

// fail starts a process that exits or stops at a failpoint, at its first pass or a later one.
func fail(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
	if len(n.Points) == 0 {
		return "", nil, nil
	}
	point := n.Points[s.Pick%uint64(len(n.Points))]
	passing := func(ctx context.Context, n *Nemesis, s Strike) []*cluster.Member {
		return slices.DeleteFunc(anyMember(ctx, n, s), func(m *cluster.Member) bool { return !slices.Contains(passedBy[part(point)].roles, m.Role) })
	}
	victims, heal, err := replace(1, passing, func(s Strike, _ *cluster.Member, o *cluster.Options) {
		o.Once, o.Dies = append(o.Once, "LEASEHOLD_FAILPOINTS="+armed(point, s)), true
	}, killAndStart)(ctx, n, s)
	if victims != "" {
		victims += " at " + armed(point, s)
	}
	return victims, heal, err
}

func part(point string) string {
	name, _, _ := strings.Cut(point, "/")
	return name
}

// armed returns the setting of a failpoint: to exit, or to stop for at most the duration of the strike.
func armed(point string, s Strike) string {
	after := 1<<(s.Pick>>32%5) - 1 // mostly early: some points are passed only once
	if s.How < 0.5 {
		return fmt.Sprintf("%s=kill:after=%d", point, after)
	}
	return fmt.Sprintf("%s=pause:for=%v:after=%d", point, time.Duration((2*s.How-1)*float64(s.For)).Round(time.Millisecond), after)
}
