package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/secure"
)

// TestDiagnoseTLS checks the findings about certificates and the policy, and their severity.
func TestDiagnoseTLS(t *testing.T) {
	now := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	until := func(left time.Duration) secure.Description {
		return secure.Description{Identities: []secure.Identity{"spiffe://example.org/operator/alice"}, NotBefore: now.Add(-day), NotAfter: now.Add(left)}
	}
	for _, test := range []struct {
		name string
		exam tlsExam
		want Verdict
		says string
	}{
		{"plain text here", tlsExam{}, skipped, "not encrypted"},
		{"plain text elsewhere", tlsExam{plain: []string{"m1:7400"}}, Hint, "m1:7400 are plaintext"},
		{"a token", tlsExam{used: true}, Fine, "no client certificate"},
		{"long enough", tlsExam{used: true, own: until(30 * day)}, Fine, "alice, until 2026-12-16"},
		{"soon", tlsExam{used: true, own: until(13*day + time.Hour)}, Hint, "expires on 2026-11-29, in 13 days"},
		{"over", tlsExam{used: true, own: until(-time.Hour)}, Wrong, "expired on 2026-11-15"},
		{"not yet", tlsExam{used: true, own: secure.Description{NotBefore: now.Add(time.Hour), NotAfter: now.Add(day)}}, Wrong, "not valid before 2026-11-16T01:00:00Z"},
		{"no identity", tlsExam{used: true, own: secure.Description{NotBefore: now.Add(-day), NotAfter: now.Add(90 * day)}}, Wrong, "has no identity"},
		{"a warning of the keeper", tlsExam{used: true, own: until(30 * day), mend: []string{"the root is old"}}, Hint, "the root is old"},
		{"a policy", tlsExam{policy: "access.yaml"}, Fine, "is valid"},
		{"a broken policy", tlsExam{policy: "access.yaml", broken: errors.New("line 3: no such role")}, Wrong, "line 3: no such role"},
	} {
		test.exam.now = now
		found := diagnoseOwnTLS(&test.exam)
		if !slices.ContainsFunc(found, func(f finding) bool { return f.Verdict == test.want && strings.Contains(f.Text, test.says) }) {
			t.Errorf("%s: %+v, want %s %q", test.name, found, test.want, test.says)
		}
	}
}
