package explorer

import "sync"

// fingerprints remember a small number for each of very many hashes, in nine bytes each
// and some room. It is safe for concurrent use.
type fingerprints struct{ parts [64]fingerprintsPart }

type fingerprintsPart struct {
	mu    sync.Mutex
	keys  []uint64 // 0: none
	value []uint8
	n     int
}

// raise makes the number of a hash at least v. It reports whether there was one, and
// whether it is higher than before.
func (f *fingerprints) raise(key uint64, v uint8) (known, raised bool) {
	p := &f.parts[key>>58]
	p.mu.Lock()
	defer p.mu.Unlock()
	if key == 0 {
		key = 1
	}
	if 4*(p.n+1) > 3*len(p.keys) {
		p.grow()
	}
	i := p.find(key)
	if p.keys[i] == key {
		if p.value[i] >= v {
			return true, false
		}
		p.value[i] = v
		return true, true
	}
	p.keys[i], p.value[i] = key, v
	p.n++
	return false, true
}

// find returns where a hash is, or is to be.
func (p *fingerprintsPart) find(key uint64) int {
	mask := len(p.keys) - 1
	i := int(key) & mask
	for p.keys[i] != 0 && p.keys[i] != key {
		i = (i + 1) & mask
	}
	return i
}

func (p *fingerprintsPart) grow() {
	keys, value := p.keys, p.value
	room := max(1024, 2*len(keys))
	p.keys, p.value = make([]uint64, room), make([]uint8, room)
	for i, key := range keys {
		if key != 0 {
			at := p.find(key)
			p.keys[at], p.value[at] = key, value[i]
		}
	}
}

// len returns how many there are.
func (f *fingerprints) len() uint64 {
	n := 0
	for i := range f.parts {
		p := &f.parts[i]
		p.mu.Lock()
		n += p.n
		p.mu.Unlock()
	}
	return uint64(n)
}
