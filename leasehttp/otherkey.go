package leasehttp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/leasehold-dev/leasehold"
)

// maxName is how long a name may be that is said to whoever routed a request. It is for
// people: the key says all that programs need.
const maxName = 64

// A refusedKey is an error that says what was asked for, as those of package leasemap do.
type refusedKey interface {
	RefusedKey() (name string, key leasehold.Key)
}

// tellKey says in the answer of a server what key it takes the request to be about.
func tellKey(h http.Header, name string, key leasehold.Key) {
	h.Set(HeaderKey, key.String())
	h.Del(HeaderName)
	if name != "" && len(name) <= maxName {
		h.Set(HeaderName, url.QueryEscape(name))
	}
}

func tellRefused(h http.Header, err error) {
	if about := refusedKey(nil); errors.As(err, &about) {
		name, key := about.RefusedKey()
		tellKey(h, name, key)
	}
}

// An otherKey is what a request failed with whose server takes it to be about another key
// than the one that it was routed by. No other server would do better.
type otherKey struct{ text string }

func (o *otherKey) Error() string { return o.text }

// misread compares the key that a server has refused with the one that the request was
// routed by. It returns nil if they are the same, if the server does not say which it has
// refused, as older ones do not, or if it has refused nothing.
func (c *call) misread(answer *http.Response) error {
	switch said := answer.Header.Get(HeaderRefused); {
	case said == RefusedNotOwner && answer.StatusCode == http.StatusMisdirectedRequest:
	case said == RefusedOtherKey && answer.StatusCode == http.StatusBadRequest:
	default:
		return nil
	}
	key, err := leasehold.ParseKey(answer.Header.Get(HeaderKey))
	if told := err == nil; !told || key == c.key {
		return nil
	}
	source := c.transport.cfg.Key
	ours, _ := source.Name(c.request) // it has one, or there would be no key
	theirs, err := url.QueryUnescape(answer.Header.Get(HeaderName))
	if err != nil {
		theirs = ""
	}
	return leasehold.Errorf("send", leasehold.ErrInvalid, clip(source.String()), "%w", &otherKey{fmt.Sprintf(
		"caller and server take the key of the request from different places, and it was not carried out: it was routed by %s, and the server looks for %s; give both the same source of keys",
		described(ours, c.key), described(theirs, key))})
}

func described(name string, key leasehold.Key) string {
	if name == "" || len(name) > maxName {
		return "key " + key.String()
	}
	return fmt.Sprintf("%q (key %v)", name, key)
}
