package partition

// Loadless is implemented by policies that do not look at loads. Nobody gathers
// any for them, and they are not asked again because loads have changed.
type Loadless interface {
	Loadless() bool
}

// UsesLoads reports whether a policy looks at loads. One that does not say is
// taken to.
func UsesLoads(p Policy) bool {
	l, says := p.(Loadless)
	return !says || !l.Loadless()
}

// Loadless reports that consistent hashing does not look at loads.
func (Consistent) Loadless() bool { return true }

// Loadless reports that equal slices do not look at loads.
func (Even) Loadless() bool { return true }

// Loadless reports that what was fixed beforehand does not depend on loads.
func (Static) Loadless() bool { return true }
