package fenceredis

import (
	"errors"
	"net"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
	"github.com/redis/go-redis/v9"
)

// rejections are the errors, by their first word, with which Redis does not run a script.
var rejections = map[string]leasehold.Kind{
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

// translate adds a kind to an error, unless it is the script's own.
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
	kind, rejected := rejections[word]
	switch {
	case raised(reply):
		return reply
	case word == applications:
		return returned(rest)
	case word == stale:
		known, _ := token.Parse(rest) // the script has validated it
		return token.Stale(resource, generation, known)
	case word == alien:
		return token.Alien(resource, rest)
	case rejected:
		return token.Unwritten(kind, resource, reply)
	}
	return reply
}

// raised reports whether the application's part of a script, or a command of it, raised an
// error: Redis adds the position.
func raised(reply redis.Error) bool { return strings.Contains(reply.Error(), "@user_script") }

// unseen reports whether Redis has not cached the script and has not run it. The same text in
// an error of the script itself does not count.
func unseen(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "NOSCRIPT ") && !raised(reply)
}

// returned is an error that the application's part of a script returned, as go-redis returns
// it without the guard.
type returned string

func (r returned) Error() string { return string(r) }

// RedisError is for go-redis.
func (returned) RedisError() {}

// neverSent reports whether there was no connection for the command.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed)
}
