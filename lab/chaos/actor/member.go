package actor

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/cluster"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/secret"
)

// A Member configures a member of a cluster.
type Member struct {
	Self    string
	Members []string // Self among them
	KeyFile string
	TTL     time.Duration
	Lease   time.Duration // of the namespace
}

func (m *Member) addFlags(f *pflag.FlagSet) {
	f.StringVar(&m.Self, "self", "", "name of a member of a cluster")
	f.StringSliceVar(&m.Members, "members", nil, "names of all members")
	f.StringVar(&m.KeyFile, "peer-key-file", "", "file with the secret of the members")
	f.DurationVar(&m.TTL, "ttl", 0, "leader TTL")
	f.DurationVar(&m.Lease, "lease", 0, "lease of the namespace")
}

// RenewalsPerLease is the number of renewals in a lease.
const RenewalsPerLease = 6

// join joins the cluster. A member whose manager fails leaves, and its process ends.
func (m *Member) join(ctx context.Context, addr string, as owner.Config, log *slog.Logger) (joined, error) {
	key, err := os.ReadFile(m.KeyFile)
	if err != nil {
		return joined{}, err
	}
	c, err := cluster.Join(ctx, cluster.Config{
		Namespace: Namespace, Self: m.Self, Peers: cluster.List(m.Members...), Addr: addr, Owner: as,
		Settings: admin.Namespace{Lease: admin.Seconds(m.Lease), Renew: admin.Seconds(m.Lease / RenewalsPerLease)},
		Key:      secret.New(strings.TrimSpace(string(key))), ServerCredentials: insecure.NewCredentials(), ClientCredentials: insecure.NewCredentials(),
		TTL: m.TTL, Longest: time.Duration(float64(m.Lease) * drift), Logger: log,
	})
	if err != nil {
		return joined{}, err
	}
	return joined{c, c.Owner()}, nil
}

// drift is the drift bound of a namespace by default.
const drift = 1.2
