package fenceredis

import (
	"errors"
	"net"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
	"github.com/redis/go-redis/v9"
)

// refusals are what Redis says, by the first word, instead of running a script.
var refusals = map[string]leasehold.Kind{
	"NOAUTH":      leasehold.ErrInvalid,
	"WRONGPASS":   leasehold.ErrInvalid,
	"NOPERM":      leasehold.ErrInvalid,
	"CROSSSLOT":   leasehold.ErrInvalid,
	"OOM":         leasehold.ErrLimit,
	"LOADING":     leasehold.ErrUnavailable,
	"BUSY":        leasehold.ErrUnavailable,
	"READONLY":    leasehold.ErrUnavailable,
	"MASTERDOWN":  leasehold.ErrUnavailable,
	"CLUSTERDOWN": leasehold.ErrUnavailable,
	"TRYAGAIN":    leasehold.ErrUnavailable,
	"MISCONF":     leasehold.ErrUnavailable,
	"NOREPLICAS":  leasehold.ErrUnavailable,
}

// translate gives an error a kind, unless it is the script's own.
func translate(resource string, generation leasehold.Generation, err error) error {
	var reply redis.Error
	switch {
	case errors.As(err, &reply):
		return translateReply(resource, generation, reply)
	case neverSent(err):
		return token.Unwritten(leasehold.ErrUnavailable, resource, err)
	}
	return token.Unknown(resource, err)
}

func translateReply(resource string, generation leasehold.Generation, reply redis.Error) error {
	word, rest, _ := strings.Cut(reply.Error(), " ")
	kind, refused := refusals[word]
	switch {
	case raised(reply):
		return reply
	case word == applications:
		return returned(rest)
	case word == stale:
		known, _ := token.Parse(rest) // the script has seen to it that it is one
		return token.Stale(resource, generation, known)
	case word == alien:
		return token.Alien(resource, rest)
	case refused:
		return token.Unwritten(kind, resource, reply)
	}
	return reply
}

// raised reports whether the application's part of a script raised an error, or a
// command that it called: Redis says where.
func raised(reply redis.Error) bool { return strings.Contains(reply.Error(), "@user_script") }

// unseen reports whether Redis does not know the script, and has not run it. What
// a script says that was run is no reason to run it again.
func unseen(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "NOSCRIPT ") && !raised(reply)
}

// returned is an error that the application's part of a script returned, as
// go-redis would have it without the guard.
type returned string

func (r returned) Error() string { return string(r) }

// RedisError is for go-redis.
func (returned) RedisError() {}

// neverSent reports whether there was no connection to send something on.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed)
}
