package machinedeployment

// fleet is what the arithmetic of a rollout knows: numbers, and no objects.
type fleet struct {
	// replicas is the desired number of Machines.
	replicas int
	// last is the number of replicas that the fleet was last scaled for; zero if unknown.
	last int
	// surge and unavailable are maxSurge and maxUnavailable.
	surge, unavailable int
	// stopped keeps the old groups as they are, except for scaling down.
	stopped bool
	// recreate deletes all old Machines before it creates new ones.
	recreate bool
	// current has the Machines of the current revision.
	current *group
	// old has those of other revisions, the oldest first.
	old []*group
}

// group is the Machines of one MachineSet.
type group struct {
	// number is the desired number, which plan changes.
	number int
	// alive are the Machines that exist and are not being deleted, and available those of them whose
	// Node has been ready for long enough.
	alive, available int
	// chosen are marked to be deleted first, and chosenAvailable are those of them that are available.
	chosen, chosenAvailable int
	// leaving are the Machines that are being deleted.
	leaving int
	// replace is set for an old group whose Machines the current group replaces. Others stay, or
	// change in place.
	replace bool
}

// settled reports whether the MachineSet has as many Machines as it should.
func (g *group) settled() bool { return g.alive == g.number }

// lost returns how many available Machines a MachineSet deletes at most to come down to a number,
// once marks has been obeyed.
func (g *group) lost(number int) int {
	victims := max(0, g.alive-number)
	if victims <= g.chosen {
		return min(victims, g.chosenAvailable)
	}
	return g.chosenAvailable + max(0, victims-g.chosen-g.idle())
}

// idle is how many unavailable Machines are not chosen.
func (g *group) idle() int { return (g.alive - g.available) - (g.chosen - g.chosenAvailable) }

// marks returns how many unavailable Machines must be marked before the group is scaled to its
// number, because a MachineSet does not prefer them.
func (g *group) marks() int {
	return min(max(0, g.alive-g.number-g.chosen), g.idle())
}

// pending returns how many available Machines may still be lost on the way to the number that the
// group has already. Its unavailable ones are marked, or count as available.
func (g *group) pending() int {
	victims := max(0, g.alive-g.number)
	if victims <= g.chosen {
		return min(victims, g.chosenAvailable)
	}
	return g.chosenAvailable + min(victims-g.chosen, g.available-g.chosenAvailable)
}

func (f *fleet) groups() []*group { return append(f.old[:len(f.old):len(f.old)], f.current) }

// sum sums a value over all groups.
func (f *fleet) sum(of func(*group) int) int {
	total := 0
	for _, g := range f.groups() {
		total += of(g)
	}
	return total
}

func (f *fleet) numbers() int { return f.sum(func(g *group) int { return g.number }) }

// total is how many Machines there are or will be, those that are being deleted included.
func (f *fleet) total() int {
	return f.sum(func(g *group) int { return max(g.number, g.alive) + g.leaving })
}

// kept is how many Machines of old groups are not replaced.
func (f *fleet) kept() int {
	return f.sum(func(g *group) int {
		if g == f.current || g.replace {
			return 0
		}
		return g.number
	})
}

// safe is how many Machines stay available, whichever the MachineSets delete to come to their numbers.
func (f *fleet) safe() int { return f.sum(func(g *group) int { return g.available - g.pending() }) }

// spare is how many available Machines may be deleted.
func (f *fleet) spare() int { return f.safe() - (f.replicas - f.unavailable) }

// plan sets the number of each group: the next step from what there is to what is wanted. Called
// again when the Machines have followed, it ends.
func (f *fleet) plan() {
	f.shrink()
	switch {
	case f.recreate:
		f.clear()
	case !f.stopped:
		f.retire()
	}
	f.spread()
	f.grow()
}

// shrink follows replicas that were lowered: the old groups go first.
func (f *fleet) shrink() {
	var staying []*group
	for _, g := range f.groups() {
		if g == f.current || !g.replace {
			staying = append(staying, g)
		}
	}
	f.remove(f.current.number+f.kept()-f.replicas, staying)
	f.remove(f.numbers()-f.replicas-f.surge, f.groups())
}

// remove lowers the numbers of groups by count in all: first for Machines that are chosen, as long as
// enough stay available, then for unavailable ones, and so on.
func (f *fleet) remove(count int, groups []*group) {
	lower := func(allowed func(g *group, loss int) bool) {
		for _, g := range groups {
			for count > 0 && g.number > 0 {
				loss := g.lost(g.number-1) - g.lost(g.number)
				if !allowed(g, loss) {
					break
				}
				g.number--
				count--
			}
		}
	}
	lower(func(g *group, loss int) bool { return g.alive-g.number < g.chosen && f.spare() >= loss })
	lower(func(g *group, loss int) bool { return loss == 0 && g != f.current })
	lower(func(g *group, loss int) bool { return g != f.current && f.spare() >= loss })
	lower(func(_ *group, loss int) bool { return loss == 0 })
	lower(func(g *group, _ int) bool { return g.alive-g.number < g.chosen })
	lower(func(*group, int) bool { return true })
}

// clear empties the old groups.
func (f *fleet) clear() {
	for _, g := range f.old {
		if g.replace {
			g.number = 0
		}
	}
}

// retire lowers the old groups as far as availability allows. A group that has not come down to its
// number yet waits. Missing Machines of the current revision count, so that one that does not come
// up ends the rollout after maxSurge + maxUnavailable Machines.
func (f *fleet) retire() {
	coming := max(0, f.current.number-f.current.available)
	quota := f.numbers() - (f.replicas - f.unavailable) - coming
	lower := func(g *group, most, loss int) {
		for g.number > 0 && most > 0 && quota > 0 {
			next := g.lost(g.number-1) - g.lost(g.number)
			if next > loss || next > max(0, f.spare()) {
				return
			}
			g.number--
			quota--
			most--
		}
	}
	if f.current.settled() && f.replacing() { // an autoscaler wants its choice deleted
		lower(f.current, min(f.current.chosen, f.numbers()-f.replicas), 1)
	}
	var waiting []*group
	for _, g := range f.old {
		if g.replace && g.alive <= g.number {
			waiting = append(waiting, g)
		}
	}
	for _, loss := range []int{0, 1} {
		for _, g := range waiting {
			lower(g, g.number, loss)
		}
	}
}

// replacing reports whether an old group is being replaced.
func (f *fleet) replacing() bool {
	for _, g := range f.old {
		if g.replace && g.number > 0 {
			return true
		}
	}
	return false
}

// spread distributes raised replicas over all groups in mid-rollout, since it is not known yet
// whether the current revision comes up.
func (f *fleet) spread() {
	numbers := f.numbers()
	if f.last == 0 || f.replicas <= f.last || !f.replacing() || f.recreate || numbers == 0 {
		return
	}
	added := max(0, min(f.replicas-f.last, f.replicas+f.surge-f.total()))
	for _, g := range f.old {
		if g.replace {
			g.number += added * g.number / numbers
		}
	}
}

// grow raises the current group as far as maxSurge allows.
func (f *fleet) grow() {
	if f.current.alive > f.current.number {
		return
	}
	wanted := f.replicas - f.kept() - f.current.number
	room := f.replicas + f.surge - f.total()
	if f.recreate {
		for _, g := range f.old {
			if g.replace && max(g.alive, g.number)+g.leaving > 0 {
				return
			}
		}
		room = f.replicas - f.total()
	}
	f.current.number += max(0, min(wanted, room))
}
