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
