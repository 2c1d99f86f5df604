package fenceredis

import (
	"errors"
	"net"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
	"github.com/redis/go-redis/v9"
)

// refusals are what Redis says, by the first word, instead of running a script.
var refusals = map[string]leasehold.Kind{
	"NOAUTH":      leasehold.Invalid,
	"WRONGPASS":   leasehold.Invalid,
	"NOPERM":      leasehold.Invalid,
	"CROSSSLOT":   leasehold.Invalid,
	"OOM":         leasehold.Limit,
	"LOADING":     leasehold.Unavailable,
	"BUSY":        leasehold.Unavailable,
	"READONLY":    leasehold.Unavailable,
	"MASTERDOWN":  leasehold.Unavailable,
	"CLUSTERDOWN": leasehold.Unavailable,
	"TRYAGAIN":    leasehold.Unavailable,
	"MISCONF":     leasehold.Unavailable,
	"NOREPLICAS":  leasehold.Unavailable,
}

// translate gives an error a kind, unless it is the script's own.
func translate(resource string, generation leasehold.Generation, err error) error {
	var reply redis.Error
	switch {
	case errors.As(err, &reply):
		return translateReply(resource, generation, reply)
	case neverSent(err):
		return leasehold.Errorf(token.Op, leasehold.Unavailable, resource, "nothing was written: %w", err)
	}
	return leasehold.Errorf(token.Op, leasehold.Unavailable, resource, "%w: %w", fence.ErrUnknown, err)
}

func translateReply(resource string, generation leasehold.Generation, reply redis.Error) error {
	word, rest, _ := strings.Cut(reply.Error(), " ")
	kind, refused := refusals[word]
	// What a script was refused while it ran says where.
	running := strings.Contains(rest, "@user_script")
	switch {
	case word == stale:
		known, _ := token.Parse(rest) // the script has seen to it that it is one
		return token.Stale(resource, generation, known)
	case word == alien:
		return leasehold.Errorf(token.Op, leasehold.Invalid, resource,
			"nothing was written: the key %q is no fence; choose a prefix that nobody else uses", rest)
	case refused && !running:
		return leasehold.Errorf(token.Op, kind, resource, "nothing was written: %w", reply)
	}
	return reply
}

// neverSent reports whether there was no connection to send something on.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed)
}
