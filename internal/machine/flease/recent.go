package flease

// recent are the cells whose rounds began last, by ballot. A round's later
// messages are many, and finding a cell by its name costs more than all the rest.
// If two rounds have the same place, one is found by its name. It may be nil.
type recent [1 << 14]*cell

func place(k Ballot) int { return int((k.Round<<2 ^ uint32(k.Process)) % (1 << 14)) }

func (r *recent) add(k Ballot, c *cell) {
	if r != nil {
		r[place(k)] = c
	}
}

// find returns the cell that a message is about; nil if there is none.
func (m *Machine) find(msg *Message) *cell {
	if m.recent != nil {
		if c := m.recent[place(msg.Ballot)]; c != nil && !c.gone && c.name == msg.Name {
			return c
		}
	}
	return m.cells[msg.Name]
}
