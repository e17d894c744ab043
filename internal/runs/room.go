package runs

// The queue's bound counts runs by kind.
const (
	ordinary = iota
	destroys
	kinds
)

func kindOf(operation Operation) int {
	if operation == Destroy {
		return destroys
	}
	return ordinary
}

// crowd counts the waiting runs of one kind.
type crowd struct {
	total      int
	namespaces map[string]int
}

// tally counts a run that starts (1) or stops (-1) waiting.
func (s *scheduler) tally(r *run, of *group, more int) {
	kind := kindOf(r.Operation)
	s.waiting += more
	of.queued[kind] += more
	in := &s.queued[kind]
	in.total += more
	if in.namespaces == nil {
		in.namespaces = map[string]int{}
	}
	if in.namespaces[of.namespace] += more; in.namespaces[of.namespace] == 0 {
		delete(in.namespaces, of.namespace)
	}
}

// displacedBy returns the run that a request displaces at the bound: the newest one of its kind in
// the largest group of the fullest namespace. It returns nil if the request's own namespace or
// group has as many runs, or one less: the two would displace each other forever. It takes linear
// time in the groups.
func (s *scheduler) displacedBy(request Request) *run {
	kind := kindOf(request.Operation)
	fullest, most := request.Machine.Namespace, s.queued[kind].namespaces[request.Machine.Namespace]+1
	for namespace, count := range s.queued[kind].namespaces {
		if count > most {
			fullest, most = namespace, count
		}
	}
	most = 0
	if own := s.groups[request.Group]; fullest == request.Machine.Namespace {
		most = 1
		if own != nil {
			most += own.queued[kind]
		}
	}
	var largest *group
	for _, of := range s.groups {
		if of.namespace == fullest && of.queued[kind] > most {
			largest, most = of, of.queued[kind]
		}
	}
	if largest == nil {
		return nil
	}
	return largest.newest(kind)
}

// newest returns the run of a kind that was queued last.
func (g *group) newest(kind int) (newest *run) {
	for key, l := range g.queues {
		if kindOf(key.operation) == kind && (newest == nil || l.last.sequence > newest.sequence) {
			newest = l.last
		}
	}
	return newest
}
