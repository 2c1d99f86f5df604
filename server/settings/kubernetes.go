package settings

import "regexp"

// fromKubernetes reports whether a variable is one that Kubernetes sets in
// every pod for each service, by the service's name. A service that is called
// leasehold, or leasehold-manager, gives us LEASEHOLD_PORT and its like, which
// nobody has mistyped.
func fromKubernetes(variable, value string) bool {
	service := regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	port := regexp.MustCompile(`_PORT=(tcp|udp|sctp)://`)
	return service.MatchString(variable) || port.MatchString(variable+"="+value)
}
