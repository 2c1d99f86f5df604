package managerd

import (
	"crypto/tls"
	"log/slog"
	"net/http"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/httpauth"
)

// pages is how health, metrics and the dashboard are served: over TLS if there is a
// keeper, in plain text if the config is nil. Who has no certificate may log in.
func (p *protection) pages() *tls.Config {
	if p.keeper == nil {
		return nil
	}
	return p.keeper.ServerTLS(secure.IfGiven)
}

// metrics lets those see the metrics who may see the status of some namespace, if there
// is a policy: Prometheus has a certificate, or a token.
func (p *protection) metrics(all http.Handler, log *slog.Logger) http.Handler {
	if p.policy == nil {
		return all
	}
	return httpauth.New(p.policy, log.With("audit", true)).Guard(leaseholdv1.AdminService_GetStatus_FullMethodName, all)
}
