// Command security measures what TLS and an access policy cost, and how well they
// protect the others from one identity that floods.
//
//	cd lab/bench && go run ./security                  all of it, in half a minute
//	cd lab/bench && go run ./security -only messages   one part: renewals, messages, calls or connections
//
// Renewals: owners that renew again as soon as they are answered, at a manager in plain
// text and at one with certificates and a policy, in turns. The rate of renewals is
// compared.
//
// Floods: owners that renew five times a second, while nothing else happens and while
// one identity sends all the messages, calls or connections that it can, in turns. The
// latency of a renewal is compared.
//
// Managers, the flood and this program are processes of one computer. The flood runs at
// the lowest priority: it stands for another computer, whose processor it would use up.
package main
