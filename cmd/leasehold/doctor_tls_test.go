package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

// What the doctor says about certificates and the policy, and how bad it is.
func TestDiagnoseTLS(t *testing.T) {
	now := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	until := func(left time.Duration) secure.Description {
		return secure.Description{Identities: []secure.Identity{"spiffe://example.org/operator/alice"}, NotBefore: now.Add(-day), NotAfter: now.Add(left)}
	}
	for _, test := range []struct {
		name string
		exam tlsExam
		want verdict
		says string
	}{
		{"plain text here", tlsExam{}, skipped, "not encrypted"},
		{"plain text elsewhere", tlsExam{plain: []string{"m1:7400"}}, hint, "m1:7400 are in plain text"},
		{"a token", tlsExam{used: true}, fine, "no certificate of our own"},
		{"long enough", tlsExam{used: true, own: until(30 * day)}, fine, "alice, until 2026-12-16"},
		{"soon", tlsExam{used: true, own: until(13*day + time.Hour)}, hint, "expires on 2026-11-29, in 13 days"},
		{"over", tlsExam{used: true, own: until(-time.Hour)}, wrong, "has expired on 2026-11-15"},
		{"not yet", tlsExam{used: true, own: secure.Description{NotBefore: now.Add(time.Hour), NotAfter: now.Add(day)}}, wrong, "not valid before 2026-11-16T01:00:00Z"},
		{"nobody's", tlsExam{used: true, own: secure.Description{NotBefore: now.Add(-day), NotAfter: now.Add(90 * day)}}, wrong, "about nobody"},
		{"what the keeper says", tlsExam{used: true, own: until(30 * day), mend: []string{"the root is old"}}, hint, "the root is old"},
		{"a policy", tlsExam{policy: "access.yaml"}, fine, "makes sense"},
		{"a broken policy", tlsExam{policy: "access.yaml", broken: errors.New("line 3: no such role")}, wrong, "line 3: no such role"},
	} {
		test.exam.now = now
		found := diagnoseOwnTLS(&test.exam)
		if !slices.ContainsFunc(found, func(f finding) bool { return f.Verdict == test.want && strings.Contains(f.Text, test.says) }) {
			t.Errorf("%s: %+v, want %s %q", test.name, found, test.want, test.says)
		}
	}
}

// Connections that certificates have prevented get advice about certificates.
func TestSecureAdvice(t *testing.T) {
	for _, test := range []struct {
		err  error
		says string
	}{
		{errors.New("connection refused"), ""},
		{leasehold.Errorf("call", leasehold.ErrDenied, "", "no such role"), "access file"},
		{leasehold.Errorf("call", leasehold.ErrDenied, "", "it takes a client certificate or a bearer token, and there was neither"), "--token-file"},
		{leasehold.Errorf("call", leasehold.ErrDenied, "", `the token "eve" expired at midnight`), "'leasehold token' makes another"},
		{leasehold.Errorf("call", leasehold.ErrDenied, "", "the certificate was revoked"), "'leasehold pki issue' makes another"},
		{errors.New("the server refuses our certificate, or that we show none"), "log says why"},
		{errors.New("the certificate has expired on Monday"), "Renew"},
		{errors.New("the certificate is for m1, and not for m2"), "pki show"},
		{errors.New("tls: handshake failure"), "pki show"},
	} {
		advice := secureAdvice(test.err)
		if (advice == "") != (test.says == "") || !strings.Contains(advice, test.says) {
			t.Errorf("%v: %q, want %q", test.err, advice, test.says)
		}
	}
}

// The doctor sees the certificates that managers show, and reads the policy.
func TestDoctorOfAFortress(t *testing.T) {
	f := newFortress(t, 1)
	f.start(0)
	f.await("operator/alice", "status")
	ended, said := f.ask("operator/alice", "doctor", "--for", "1s", "--access", f.of("access.yaml"))
	for _, want := range []string{
		"tls        this computer: the certificate of spiffe://example.org/operator/alice expires on ",
		"tls        " + f.addrs[0] + ": the certificate of spiffe://example.org/manager/m1 expires on ",
		"access     " + f.of("access.yaml") + ": it can be read, and makes sense",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("status %d, no %q in\n%s", ended, want, said)
		}
	}
	_, said = f.ask("lookup/sessions", "doctor", "--for", "1s", "--access", f.of("ca.crt"))
	if !strings.Contains(said, "WRONG  access") {
		t.Errorf("what is no policy is taken for one:\n%s", said)
	}
}
