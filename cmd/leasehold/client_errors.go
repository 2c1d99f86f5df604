package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
)

// preface is what gRPC says when it is hung up on at once.
const preface = "error reading server preface"

func (c *client) whereToLook(reasons []string) string {
	if !c.security.tls() && slices.ContainsFunc(reasons, func(why string) bool { return strings.Contains(why, preface) }) {
		return "Something is there, and hangs up on plain text: if managers have certificates, say with --tls-dir where ours are."
	}
	for _, why := range reasons {
		if advice := secureAdvice(errors.New(why)); advice != "" && c.security.tls() {
			return advice
		}
	}
	if from := c.origin("managers"); from != "default" {
		return fmt.Sprintf("The addresses are from %s. Is that where managers listen, and can they be reached from here?", from)
	}
	return "Start one with 'leasehold manager', or say with --managers or LEASEHOLD_MANAGERS where they are."
}

// explainRefusal adds to a manager's refusal what to do about it.
func (c *client) explainRefusal(err error) error {
	var (
		ours    *leasehold.Error
		unknown *admin.UnknownOwnerError
		loss    *admin.LossError
	)
	switch {
	case errors.As(err, &unknown):
		return failed{noSuchOwner(unknown)}
	case errors.As(err, &loss):
		return failed{wouldLose(loss)}
	case errors.As(err, &ours) && ours.Kind == leasehold.NotFound && ours.Subject == c.namespace && c.namespace != "" &&
		!strings.Contains(err.Error(), "namespace create"):
		err = advised(err, createIt(c.namespace))
	case leasehold.KindOf(err) == leasehold.Denied:
		err = advised(err, secureAdvice(err))
	case grpcstatus.Code(err) == codes.Unimplemented && strings.Contains(err.Error(), "AdminService"):
		err = failed{errors.New("this manager is older than this command, or the one that leads is, and cannot do that: upgrade the managers")}
	case grpcstatus.Code(err) == codes.Unimplemented:
		err = advised(err, "What answers there is no manager of this version. Managers listen on port 7400 unless told otherwise.")
	}
	return failed{err}
}

// advised is an error with a sentence below it that says what to do.
func advised(err error, advice string) error { return fmt.Errorf("%w\n%s", err, advice) }

func createIt(namespace string) string {
	return fmt.Sprintf("Create it with 'leasehold namespace create %s', or see with 'leasehold namespace list' which there are.", namespace)
}
