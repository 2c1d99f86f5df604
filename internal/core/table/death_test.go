package table_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/core/table"
)

func TestDeathHash(t *testing.T) {
	token := table.DeathToken{1, 2, 3}
	hash := token.Hash()
	if !hash.Verifies(token) {
		t.Error("the token is rejected")
	}
	for i := range token {
		guess := token
		guess[i] ^= 1
		if hash.Verifies(guess) {
			t.Errorf("a token with another byte %d is accepted", i)
		}
	}
	if hash.Verifies(table.DeathToken(hash)) {
		t.Error("the hash is accepted as the token")
	}
	if (table.DeathHash{}).Verifies(table.DeathToken{}) {
		t.Error("without a hash a token is accepted")
	}
	if s := fmt.Sprint(token); strings.Contains(s, "1 2 3") || strings.Contains(s, "010203") {
		t.Errorf("the token is printed: %s", s)
	}
}

// TestWithoutDeathHash: other processes do not see the hash, and the holder itself keeps it.
func TestWithoutDeathHash(t *testing.T) {
	if h := (*table.Holder)(nil).WithoutDeathHash(); h != nil {
		t.Errorf("no holder became %v", h)
	}
	if ann.WithoutDeathHash() != ann {
		t.Error("a holder without a hash is copied")
	}
	supervised := *ann
	supervised.DeathHash = table.DeathToken{1}.Hash()
	if public := supervised.WithoutDeathHash(); *public != *ann {
		t.Errorf("other processes see %+v, want %+v", *public, *ann)
	}
	if supervised.DeathHash.IsZero() {
		t.Error("the holder itself lost the hash")
	}
}
