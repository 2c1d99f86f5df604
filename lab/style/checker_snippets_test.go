package style

import (
	"slices"
	"strings"
	"testing"
)

// TestCheckerCatches: each snippet violates a rule, and the checker reports it.
func TestCheckerCatches(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"net":           {`import "net"; var _ net.IP`, `import "net"`},
		"net/http":      {`import "net/http"; var _ http.Client`, `import "net/http"`},
		"net/netip":     {`import "net/netip"; var _ netip.Addr`, `import "net/netip"`},
		"os":            {`import "os"; var _ os.File`, `import "os"`},
		"os/exec":       {`import "os/exec"; var _ exec.Cmd`, `import "os/exec"`},
		"sync":          {`import "sync"; type t struct{ mu sync.Mutex }`, `import "sync"`},
		"sync/atomic":   {`import "sync/atomic"; type t struct{ n atomic.Int64 }`, `import "sync/atomic"`},
		"log":           {`import "log"; func f() { log.Print() }`, `import "log"`},
		"log/slog":      {`import "log/slog"; func f(*slog.Logger) {}`, `import "log/slog"`},
		"context":       {`import "context"; func f(context.Context) {}`, `import "context"`},
		"runtime":       {`import "runtime"; func f() { runtime.GC() }`, `import "runtime"`},
		"runtime/debug": {`import "runtime/debug"; func f() { debug.FreeOSMemory() }`, `import "runtime/debug"`},
		"syscall":       {`import "syscall"; var _ syscall.Errno`, `import "syscall"`},
		"unsafe":        {`import "unsafe"; var _ unsafe.Pointer`, `import "unsafe"`},
		"crypto/rand":   {`import "crypto/rand"; func f() { rand.Text() }`, `import "crypto/rand"`},
		"math/rand":     {`import "math/rand"; func f(*rand.Rand) {}`, `import "math/rand"`},
		"maphash":       {`import "hash/maphash"; var _ maphash.Seed`, `import "hash/maphash"`},
		"testing":       {`import "testing"; func f(testing.TB) {}`, `import "testing"`},
		"x/sys":         {`import "golang.org/x/sys/unix"; var _ unix.Errno`, `import "golang.org/x/sys/unix"`},
		"renamed":       {`import harmless "os"; var _ harmless.File`, `import "os"`},
		"dot import":    {`import . "time"; var _ Duration`, `import . "time"`},
		"blank import":  {`import _ "embed"`, `import _ "embed"`},

		"random global":         {`import "math/rand/v2"; func f() int { return rand.IntN(6) }`, "rand.IntN"},
		"random shuffle":        {`import "math/rand/v2"; func f() { rand.Shuffle(0, nil) }`, "rand.Shuffle"},
		"random as a value":     {`import "math/rand/v2"; func f() any { return rand.Uint64 }`, "rand.Uint64"},
		"random, renamed":       {`import r "math/rand/v2"; func f() int { return r.Int() }`, "rand.Int"},
		"time.Now":              {`import "time"; func f() { time.Now() }`, "time.Now"},
		"time.Since":            {`import "time"; func f(t time.Time) { time.Since(t) }`, "time.Since"},
		"time.Until":            {`import "time"; func f(t time.Time) { time.Until(t) }`, "time.Until"},
		"time.Sleep":            {`import "time"; func f() { time.Sleep(1) }`, "time.Sleep"},
		"time.After":            {`import "time"; func f() { time.After(1) }`, "time.After"},
		"time.Tick":             {`import "time"; func f() { time.Tick(1) }`, "time.Tick"},
		"time.NewTimer":         {`import "time"; func f() { time.NewTimer(1) }`, "time.NewTimer"},
		"time.NewTicker":        {`import "time"; func f() { time.NewTicker(1) }`, "time.NewTicker"},
		"time.AfterFunc":        {`import "time"; func f() { time.AfterFunc(1, nil) }`, "time.AfterFunc"},
		"time.Now as a value":   {`import "time"; type c struct{ now func() time.Time }; func f() c { return c{time.Now} }`, "time.Now"},
		"time.Now, renamed":     {`import wall "time"; func f() { wall.Now() }`, "time.Now"},
		"time.Now, parentheses": {`import "time"; func f() { (time).Now() }`, "time.Now"},
		"fmt.Println":           {`import "fmt"; func f() { fmt.Println() }`, "fmt.Println"},
		"println":               {`func f() { println() }`, "println"},

		"go statement":    {`func f() { go f() }`, "go statement"},
		"channel type":    {`type t chan int`, "channel type"},
		"channel made":    {`func f() { _ = make(chan int) }`, "channel type"},
		"channel send":    {`func f(x t) { x <- 1 }`, "channel send"},
		"channel receive": {`func f(x t) { <-x }`, "channel receive"},
		"select":          {`func f() { select {} }`, "select statement"},
		"init":            {`func init() {}`, "func init"},

		"variable":               {`var count int`, "package variable count"},
		"variable with a value":  {`var count = 0`, "package variable count"},
		"variable in a group":    {"var (\n\ta = [...]int{1}\n\tb = 1\n)", "package variable b"},
		"two variables":          {`var a, b = f()`, "package variable a"},
		"pointer":                {`type t struct{}; var shared = &t{}`, "package variable shared"},
		"table of pointers":      {`type t struct{}; var shared = []*t{&t{}}`, "package variable shared"},
		"cache":                  {`var cache = make(map[string]int)`, "package variable cache"},
		"function variable":      {`var hook = func() {}`, "package variable hook"},
		"exported table":         {`var Names = []string{"a"}`, "package variable Names"},
		"table assigned":         {`var names = []string{"a"}; func f() { names = nil }`, "package variable names assigned to"},
		"element assigned":       {`var names = []string{"a"}; func f() { names[0] = "b" }`, "package variable names assigned to"},
		"element counted":        {`var counts = [2]int{1, 2}; func f() { counts[0]++ }`, "package variable counts assigned to"},
		"field assigned":         {`var config = struct{ n int }{1}; func f() { config.n += 1 }`, "package variable config assigned to"},
		"assigned by range":      {`var last = [1]int{1}; func f(s []int) { for last[0] = range s {} }`, "package variable last assigned to"},
		"address taken":          {`var names = [1]string{"a"}; func f() *string { return &names[0] }`, "package variable names has its address taken"},
		"cleared":                {`var m = map[int]int{1: 1}; func f() { clear(m) }`, "package variable m is passed to clear"},
		"deleted from":           {`var m = map[int]int{1: 1}; func f() { delete(m, 1) }`, "package variable m is passed to delete"},
		"copied into":            {`var s = []int{1}; func f() { copy(s, s[:0]) }`, "package variable s is passed to copy"},
		"sorted":                 {`import "slices"; var s = []int{2, 1}; func f() { slices.Sort(s) }`, "package variable s is passed to slices.Sort"},
		"passed on":              {`var s = []int{1}; func f() { g(s) }; func g([]int) {}`, "package variable s is passed to g"},
		"changed by a method":    {`type t struct{ n int }; func (x *t) inc() { x.n++ }; var c = t{1}; func f() { c.inc() }`, "package variable c has a method called"},
		"error assigned":         {`import "errors"; var ErrX = errors.New("x"); func f() { ErrX = nil }`, "package variable ErrX assigned to"},
		"another's variable":     {`import "github.com/leasehold-dev/leasehold"; func f() { leasehold.All = leasehold.Range{} }`, "package variable leasehold.All assigned to"},
		"part of another's":      {`import "github.com/leasehold-dev/leasehold"; func f() { leasehold.All.Limit = 1 }`, "package variable leasehold.All assigned to"},
		"address of another's":   {`import "github.com/leasehold-dev/leasehold"; func f() any { return &leasehold.All }`, "package variable leasehold.All has its address taken"},
		"an exception, assigned": {`var excepted = 1; func f() { excepted = 2 }`, "package variable excepted assigned to"},
	} {
		t.Run(name, func(t *testing.T) {
			got := impurities(map[string]string{"machine.go": "package machine; " + test.source}, "excepted")
			if !slices.ContainsFunc(got, func(line string) bool {
				return strings.HasPrefix(line, "machine.go:") && strings.Contains(line, ": "+test.want)
			}) {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

// TestCheckerChecksAllFilesOfAPackage: a variable declared in one file is changed
// in another.
func TestCheckerChecksAllFilesOfAPackage(t *testing.T) {
	got := impurities(map[string]string{
		"a.go": "package machine\n\nvar names = []string{\"a\"}\n",
		"b.go": "package machine\n\nfunc f() {\n\tnames[0] = \"b\"\n}\n",
	})
	want := []string{"b.go:4: package variable names assigned to"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCheckerReportsInOrder(t *testing.T) {
	got := impurities(map[string]string{
		"b.go": "package machine\nfunc init() {}\n",
		"a.go": "package machine\nfunc f() { go f() }\nvar n int\n",
	})
	want := []string{
		"a.go:2: go statement: a machine runs on one goroutine",
		"a.go:3: package variable n: no state outlives a machine",
		"b.go:2: func init: pass everything at construction",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCheckerReportsParseErrors(t *testing.T) {
	if got := impurities(map[string]string{"a.go": "package machine; func {"}); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

// TestCheckerPasses clean code that is similar to each violation.
func TestCheckerPasses(t *testing.T) {
	const clean = `
// Package machine mentions time.Now, go f(), select {} and var x in a comment.
package machine

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

const period = 3 * time.Second

var (
	ErrStale    = errors.New("stale")
	errShut     = leasehold.Errorf("step", leasehold.ErrClosed, "machine", "shut")
	stateNames  = [...]string{"new", "open"}
	weights     = map[string]int{"a": 1}
	allowedNext = [][2]int{{0, 1}}
)

var _ fmt.Stringer = (*Machine)(nil)

type Machine struct {
	rng    *rand.Rand
	source rand.Source
	now    mono.Instant
	init   bool
	names  []string
}

func New(seed uint64) *Machine {
	return &Machine{rng: rand.New(rand.NewPCG(seed, 0)), source: rand.NewChaCha8([32]byte{})}
}

// init as a method is no func init.
func (m *Machine) String() string { return fmt.Sprintf("%s until %v", stateNames[0], m.now) }

func (m *Machine) Step(now mono.Instant, wait time.Duration) time.Time {
	time := struct{ Now func() int }{func() int { return 0 }} // not the package
	_ = time.Now()
	stateNames := []string{"mine"} // not the package's
	stateNames[0] = "changed"
	slices.Sort(stateNames)
	weights := maps.Clone(weights)
	weights["b"] = 2
	delete(weights, "a")
	for _, next := range allowedNext {
		m.names = append(m.names, fmt.Sprint(next))
	}
	m.names = append(m.names, stateNames...)
	m.now = now.Add(wait)
	if m.rng.IntN(2) == 0 && slices.Contains(m.names, "x") && len(allowedNext) > 0 {
		panic(fmt.Sprint(errShut, ErrStale, xxhash.Sum64String("x"), leasehold.All, period))
	}
	return Epoch
}
`
	const more = `package machine

import "time"

// Epoch is a documented exception.
var Epoch = time.Unix(0, 0)
`
	if got := impurities(map[string]string{"machine.go": clean, "epoch.go": more}, "Epoch"); len(got) > 0 {
		t.Errorf("clean code is reported:\n%s", strings.Join(got, "\n"))
	}
}
