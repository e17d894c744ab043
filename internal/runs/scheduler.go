package runs

import (
	"container/heap"
	"time"
)

// limits is how a scheduler shares its workers out. See the package's documentation for what they guarantee.
type limits struct {
	workers int
	// drift is how many workers drift checks may hold.
	drift int
	// reserved is how many workers each other operation gets before any that holds as many already.
	reserved int
	// perGroup and perCredential are what a group and a credential may hold while others wait.
	perGroup, perCredential int
	// alone is what a group may hold when nobody else waits.
	alone int
	// aging is how long a run must wait to gain one rank of precedence.
	aging time.Duration
}

// The ways in which a run is picked, for the metrics.
const (
	pickInOrder  = "turn"
	pickReserved = "reserved"
	pickAged     = "aged"
	pickLifted   = "lifted"
)

// scheduler decides which of the waiting runs starts next. It is pure: no clock, no goroutines. It is not safe for concurrent use.
//
// Runs wait in queues, one for each group, operation and credential, oldest first. The queues of one operation and credential form a
// lane, a heap by their groups' running runs and then by sequence; the lanes of one operation form a heap by their first queues. As a
// group's cap grows with its running runs, the first queue of a lane is below its cap if any is; and no more lanes have a credential
// at its cap than there are workers. So push, remove and release take logarithmic time in the queues, and so does admit for each such lane.
type scheduler struct {
	limits      limits
	operations  map[Operation]*operationQueue
	groups      map[string]*group
	credentials map[string]int
	// waiting and running count runs.
	waiting, running int
	// sequence numbers what is pushed, picked and released.
	sequence uint64
}

// operationQueue is the runs of one operation.
type operationQueue struct {
	rank, running int
	// most is how many may run, least how many come before other operations' runs.
	most, least int
	lanes       map[string]*lane
	order       ordered[*lane]
}

type group struct {
	running int
	// served is when a run of the group started or ended last, and sequence numbers that: the runs behind it begin to age then.
	served   time.Time
	sequence uint64
	queues   map[queueKey]*groupQueue
}

type queueKey struct {
	operation  Operation
	credential string
}

type lane struct {
	credential string
	queue      *operationQueue
	order      ordered[*groupQueue]
	place      int
}

// groupQueue is a doubly linked list of runs, so that any is removed in constant time.
type groupQueue struct {
	key         queueKey
	group       *group
	lane        *lane
	first, last *run
	place       int
	// running, sequence and oldest order queues; they are kept here, as a heap allows for one change at a time.
	running          int
	sequence, oldest uint64
}

// refresh notes what has changed of the queue's group and its first run.
func (l *groupQueue) refresh() {
	l.running, l.sequence, l.oldest = l.group.running, max(l.first.sequence, l.group.sequence), l.first.sequence
}

// since is when the first run of the queue began to age.
func (l *groupQueue) since() time.Time {
	if l.first.status.QueuedAt.After(l.group.served) {
		return l.first.status.QueuedAt
	}
	return l.group.served
}

func (l *groupQueue) before(other *groupQueue) bool {
	if l.running != other.running {
		return l.running < other.running
	}
	if l.sequence != other.sequence {
		return l.sequence < other.sequence
	}
	return l.oldest < other.oldest
}

func newScheduler(l limits) *scheduler {
	s := &scheduler{limits: l, operations: map[Operation]*operationQueue{}, groups: map[string]*group{}, credentials: map[string]int{}}
	for rank, operation := range precedence {
		q := &operationQueue{rank: rank, most: l.workers, least: l.reserved, lanes: map[string]*lane{}}
		if operation == Drift {
			q.most, q.least = l.drift, 0
		}
		q.order = ordered[*lane]{
			before: func(a, b *lane) bool { return a.order.items[0].before(b.order.items[0]) },
			place:  func(l *lane) *int { return &l.place },
		}
		s.operations[operation] = q
	}
	return s
}

// push lets a run wait.
func (s *scheduler) push(r *run) {
	s.sequence++
	r.sequence = s.sequence
	s.waiting++
	l := s.queueOf(r)
	r.queue, r.previous, r.next = l, l.last, nil
	if l.last != nil {
		l.last.next = r
		l.last = r
		return
	}
	l.first, l.last = r, r
	l.group.queues[l.key] = l
	l.lane.add(l)
}

// queueOf returns the queue in which a run waits; a new one is not in its group and lane yet.
func (s *scheduler) queueOf(r *run) *groupQueue {
	of := s.groups[r.Group]
	if of == nil {
		of = &group{queues: map[queueKey]*groupQueue{}}
		s.groups[r.Group] = of
	}
	key := queueKey{r.Operation, r.Credential}
	if there := of.queues[key]; there != nil {
		return there
	}
	q := s.operations[r.Operation]
	in := q.lanes[r.Credential]
	if in == nil {
		in = &lane{credential: r.Credential, queue: q, order: ordered[*groupQueue]{before: (*groupQueue).before, place: func(l *groupQueue) *int { return &l.place }}}
		q.lanes[r.Credential] = in
	}
	return &groupQueue{key: key, group: of, lane: in}
}

// remove takes a waiting run out wherever it stands.
func (s *scheduler) remove(r *run) {
	s.take(r)
	s.forget(r.Group)
}

// take takes a waiting run out of its line.
func (s *scheduler) take(r *run) {
	l := r.queue
	s.waiting--
	first := l.first == r
	if r.previous != nil {
		r.previous.next = r.next
	} else {
		l.first = r.next
	}
	if r.next != nil {
		r.next.previous = r.previous
	} else {
		l.last = r.previous
	}
	r.queue, r.previous, r.next = nil, nil, nil
	switch {
	case l.first == nil:
		delete(l.group.queues, l.key)
		l.lane.drop(l)
	case first:
		l.lane.moved(l)
	}
}

// forget drops a group that has no runs.
func (s *scheduler) forget(name string) {
	if of := s.groups[name]; of != nil && of.running == 0 && len(of.queues) == 0 {
		delete(s.groups, name)
	}
}

// pick returns the run that may start now, and why it was picked; nil when none may. Caps are lifted only when nobody waits who is below them.
func (s *scheduler) pick() (*run, string) {
	if s.running >= s.limits.workers {
		return nil, ""
	}
	l, pick := s.best(false)
	if l == nil {
		if l, _ = s.best(true); l == nil {
			return nil, ""
		}
		pick = pickLifted
	}
	return l.first, pick
}

// start gives a worker to the run that pick has returned.
func (s *scheduler) start(next *run, now time.Time) {
	s.take(next)
	s.count(next, 1, now)
}

// release gives the worker of a run back that start has given it.
func (s *scheduler) release(r *run, now time.Time) {
	s.count(r, -1, now)
	s.forget(r.Group)
}

// count keeps account of a run that starts or ends.
func (s *scheduler) count(r *run, more int, now time.Time) {
	s.running += more
	s.operations[r.Operation].running += more
	if s.credentials[r.Credential] += more; s.credentials[r.Credential] == 0 {
		delete(s.credentials, r.Credential)
	}
	of := s.groups[r.Group]
	of.running += more
	s.sequence++
	of.served, of.sequence = now, s.sequence
	for _, l := range of.queues {
		l.lane.moved(l)
	}
}

// best returns the line whose turn it is. An operation that holds less than its reserved share comes first, then the group with the
// fewest running runs, then the run with the highest precedence, which grows with its age.
func (s *scheduler) best(lifted bool) (best *groupQueue, pick string) {
	short, highest := false, len(precedence)
	for _, operation := range precedence {
		l := s.operations[operation].next(s, lifted)
		if l == nil {
			continue
		}
		highest = min(highest, l.lane.queue.rank)
		below := l.lane.queue.running < l.lane.queue.least
		if best == nil || below && !short || below == short && s.precedes(l, best) {
			best, short = l, below
		}
	}
	switch {
	case best == nil || best.lane.queue.rank == highest:
		return best, pickInOrder
	case short:
		return best, pickReserved
	default:
		return best, pickAged
	}
}

// precedes compares lines of different operations. Within a group it is the runs' own age that counts.
func (s *scheduler) precedes(a, b *groupQueue) bool {
	if a.group == b.group {
		return s.due(a, a.first.status.QueuedAt).Before(s.due(b, b.first.status.QueuedAt))
	}
	if a.group.running != b.group.running {
		return a.group.running < b.group.running
	}
	return s.due(a, a.since()).Before(s.due(b, b.since()))
}

// due orders by age and precedence at once: a rank less is worth a time of waiting.
func (s *scheduler) due(l *groupQueue, since time.Time) time.Time {
	return since.Add(time.Duration(l.lane.queue.rank) * s.limits.aging)
}

// next returns the operation's line whose turn it is among those that the caps allow.
func (q *operationQueue) next(s *scheduler, lifted bool) *groupQueue {
	if q.running >= q.most {
		return nil
	}
	most := s.limits.perGroup
	if lifted {
		most = s.limits.alone
	}
	var capped []*lane
	defer func() {
		for _, l := range capped {
			heap.Push(&q.order, l)
		}
	}()
	for q.order.Len() > 0 {
		first := q.order.items[0]
		if l := first.order.items[0]; l.running >= most {
			return nil
		} else if lifted || !s.capped(first.credential) {
			return l
		}
		capped = append(capped, heap.Pop(&q.order).(*lane))
	}
	return nil
}

func (s *scheduler) capped(credential string) bool {
	return credential != "" && s.credentials[credential] >= s.limits.perCredential
}

// add, drop and moved keep the lane in order, and its place among the others of its operation.
func (l *lane) add(added *groupQueue) {
	added.refresh()
	heap.Push(&l.order, added)
	if l.order.Len() == 1 {
		heap.Push(&l.queue.order, l)
		return
	}
	heap.Fix(&l.queue.order, l.place)
}

func (l *lane) drop(dropped *groupQueue) {
	if l.order.Len() == 1 {
		heap.Remove(&l.queue.order, l.place)
		l.order.items = nil
		delete(l.queue.lanes, l.credential)
		return
	}
	heap.Remove(&l.order, dropped.place)
	heap.Fix(&l.queue.order, l.place)
}

func (l *lane) moved(moved *groupQueue) {
	moved.refresh()
	heap.Fix(&l.order, moved.place)
	heap.Fix(&l.queue.order, l.place)
}
