package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/settings"
)

// preface is what gRPC says when it is hung up on at once.
const preface = "error reading server preface"

func (c *Client) whereToLook(reasons []string) string {
	if !c.Security.Tls() && slices.ContainsFunc(reasons, func(why string) bool { return strings.Contains(why, preface) }) {
		return "Something is there, and hangs up on plain text: if managers have certificates, say with --tls-dir where ours are."
	}
	for _, why := range reasons {
		if advice := SecureAdvice(errors.New(why)); advice != "" && c.Security.Tls() {
			return advice
		}
	}
	if from := c.origin("managers"); from != "default" {
		return fmt.Sprintf("The addresses are from %s. Is that where managers listen, and can they be reached from here?", from)
	}
	return "Start one with 'leasehold manager run', or say with --managers or LEASEHOLD_MANAGERS where they are."
}

// explainRefusal adds to a manager's refusal what to do about it.
func (c *Client) explainRefusal(err error) error {
	var (
		ours    *leasehold.Error
		unknown *admin.UnknownOwnerError
		loss    *admin.LossError
	)
	switch {
	case errors.As(err, &unknown):
		return Fail(noSuchOwner(unknown))
	case errors.As(err, &loss):
		return Fail(wouldLose(loss))
	case errors.As(err, &ours) && ours.Kind == leasehold.ErrNotFound && ours.Subject == c.Namespace && c.Namespace != "" &&
		!strings.Contains(err.Error(), "namespace create"):
		err = Advised(err, CreateIt(c.Namespace))
	case leasehold.KindOf(err) == leasehold.ErrDenied:
		err = Advised(err, SecureAdvice(err))
	case grpcstatus.Code(err) == codes.Unimplemented && strings.Contains(err.Error(), "AdminService"):
		err = Fail(errors.New("this manager is older than this command, or the one that leads is, and cannot do that: upgrade the managers"))
	case grpcstatus.Code(err) == codes.Unimplemented:
		err = Advised(err, "What answers there is no manager of this version. Managers listen on port 7400 unless told otherwise.")
	}
	return Fail(err)
}

// Advised is an error with a sentence below it that says what to do.
func Advised(err error, advice string) error { return fmt.Errorf("%w\n%s", err, advice) }

func CreateIt(namespace string) string {
	return fmt.Sprintf("Create it with 'leasehold namespace create %s', or see with 'leasehold namespace list' which there are.", namespace)
}

// wouldLose explains why an order was refused that would lose state.
func wouldLose(loss *admin.LossError) error {
	var unable []string
	for _, owner := range loss.Unable {
		unable = append(unable, console.Shown(owner))
	}
	const most = 5 // to name
	if len(unable) > most {
		unable = append(unable[:most], "others")
	}
	because := "nobody is there to take it"
	if len(unable) > 0 {
		because = strings.Join(unable, ", ") + " cannot move any"
	}
	return fmt.Errorf("%s would lose the state of %s of the keys, because %s\nAdd --lose-state if that is meant; --dry-run says which keys they are",
		console.Shown(loss.Order), console.Percent(loss.Share), because)
}

// noSuchOwner says which names are most like one that no owner has.
func noSuchOwner(unknown *admin.UnknownOwnerError) error {
	fail := func(format string, args ...any) error {
		return leasehold.Errorf("", leasehold.ErrNotFound, unknown.Owner, format, args...)
	}
	if len(unknown.Known) == 0 {
		return fail("nobody has joined %s", unknown.Namespace)
	}
	var names []string
	for _, name := range unknown.Known {
		names = append(names, console.Shown(name))
	}
	const most = 3 // to propose
	near := settings.Nearest(unknown.Owner, names, most)
	if len(near) == 0 {
		return fail("no owner in %s has this name; 'leasehold owner list -n %s' lists those there are", unknown.Namespace, unknown.Namespace)
	}
	return fail("no owner in %s has this name; the closest: %s", unknown.Namespace, strings.Join(near, ", "))
}
