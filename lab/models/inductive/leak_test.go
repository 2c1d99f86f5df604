package inductive

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
