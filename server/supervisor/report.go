package supervisor

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/internal/runtime/death"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
	"github.com/leasehold-dev/leasehold/internal/runtime/supervise"
	"github.com/leasehold-dev/leasehold/secure"
)

// Report is the usual Config.Report. It authenticates with the certificate of the child.
func Report(ctx context.Context, d *supervise.Death) (recorded bool, err error) {
	identity, closeFiles, err := credentialsOf(d.Files)
	if err != nil {
		return false, err
	}
	defer closeFiles()
	return death.Report(ctx, d.Managers, []grpc.DialOption{grpc.WithTransportCredentials(identity)},
		&death.Notice{Namespace: d.Namespace, Owner: d.Owner, Session: d.ID, Token: d.Token})
}

func credentialsOf(f *supervise.Files) (_ credentials.TransportCredentials, closeFiles func(), err error) {
	if f == nil {
		return managerconn.Plaintext(), func() {}, nil
	}
	keeper, err := secure.Open(f.Config())
	if err != nil {
		return nil, nil, err
	}
	return keeper.Client(), keeper.Close, nil
}
