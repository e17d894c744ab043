package runs

import (
	"container/heap"
	"time"
)

// limits is how a scheduler shares out its workers. The package documentation says what they
// guarantee.
type limits struct {
	workers int
	// drift is how many workers drift checks may hold.
	drift int
	// reserved is how many workers each other operation gets before any that already holds as many.
	reserved int
	// perGroup and perCredential bound a group and a credential while others wait.
	perGroup, perCredential int
	// alone bounds a group while no other waits.
	alone int
	// aging is how long a run waits to gain one rank of priority.
	aging time.Duration
}

// The rules by which a run is picked, for the metrics.
const (
	pickInOrder  = "turn"
	pickReserved = "reserved"
	pickAged     = "aged"
	pickLifted   = "lifted"
)

// scheduler picks the next waiting run. It is pure: it has no clock and no goroutines. It is not
// safe for concurrent use.
//
// Runs wait in queues, one per group, operation and credential, oldest first. The queues of one
// operation and credential form a lane, a heap ordered by the groups' running runs and then by
// sequence. The lanes of one operation form a heap ordered by their first queues.
//
// A group's cap grows with its running runs, so the first queue of a lane is below its cap if any
// is. At most as many lanes have a credential at its cap as there are workers and throttled
// credentials. So push, remove and release take logarithmic time in the queues, and so does admit
// for each such lane.
type scheduler struct {
	limits      limits
	operations  map[Operation]*operationQueue
	groups      map[string]*group
	credentials map[string]int
	// idleGroups and idleCredentials count the executing runs without a worker.
	idleGroups, idleCredentials map[string]int
	// throttles are the throttled credentials.
	throttles map[string]*throttle
	// waiting and running count runs; queued counts the waiting ones by kind.
	waiting, running int
	queued           [kinds]crowd
	// sequence numbers pushes, picks and releases.
	sequence uint64
}

// operationQueue holds the waiting runs of one operation.
type operationQueue struct {
	rank, running int
	// most bounds its running runs; least is its reserved share.
	most, least int
	lanes       map[string]*lane
	order       ordered[*lane]
}

type group struct {
	namespace string
	running   int
	// queued counts the waiting runs by kind.
	queued [kinds]int
	// served is when a run of the group last started or ended, and sequence is the number of that
	// event. Waiting runs age from then.
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

// groupQueue is a doubly linked list of runs, for removal in constant time.
type groupQueue struct {
	key         queueKey
	group       *group
	lane        *lane
	first, last *run
	place       int
	// running, sequence and oldest order queues. They are copied here because a heap tolerates one
	// change at a time.
	running          int
	sequence, oldest uint64
}

// refresh copies the order keys from the queue's group and first run.
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
	s := &scheduler{limits: l, operations: map[Operation]*operationQueue{}, groups: map[string]*group{},
		credentials: map[string]int{}, throttles: map[string]*throttle{},
		idleGroups: map[string]int{}, idleCredentials: map[string]int{}}
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

// push adds a waiting run.
func (s *scheduler) push(r *run) {
	s.sequence++
	r.sequence = s.sequence
	l := s.queueOf(r)
	s.tally(r, l.group, 1)
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

// queueOf returns the queue for a run. A new queue is not in its group and lane yet.
func (s *scheduler) queueOf(r *run) *groupQueue {
	of := s.groups[r.Group]
	if of == nil {
		of = &group{namespace: r.Machine.Namespace, queues: map[queueKey]*groupQueue{}}
		s.groups[r.Group] = of
	}
	key := queueKey{r.Operation, r.Credential}
	if there := of.queues[key]; there != nil {
		return there
	}
	q := s.operations[r.Operation]
	in := q.lanes[r.Credential]
	if in == nil {
		in = &lane{credential: r.Credential, queue: q, order: ordered[*groupQueue]{before: (*groupQueue).before,
			place: func(l *groupQueue) *int { return &l.place }}}
		q.lanes[r.Credential] = in
	}
	return &groupQueue{key: key, group: of, lane: in}
}

// remove drops a waiting run.
func (s *scheduler) remove(r *run) {
	s.take(r)
	s.forget(r.Group)
}

// take removes a waiting run from its queue.
func (s *scheduler) take(r *run) {
	l := r.queue
	s.tally(r, l.group, -1)
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

// pick returns the run that may start now and the rule that picked it, or nil. Caps are lifted only
// if no run below them waits.
func (s *scheduler) pick(now time.Time) (*run, string) {
	if s.running >= s.limits.workers {
		return nil, ""
	}
	l, pick := s.best(now, false)
	if l == nil {
		if l, _ = s.best(now, true); l == nil {
			return nil, ""
		}
		pick = pickLifted
	}
	return l.first, pick
}

// start gives a worker to the run returned by pick.
func (s *scheduler) start(next *run, now time.Time) {
	s.take(next)
	s.count(next, 1, now)
}

// release returns the worker of a started run.
func (s *scheduler) release(r *run, now time.Time) {
	s.count(r, -1, now)
	s.forget(r.Group)
}

// count tracks a run that starts or ends.
func (s *scheduler) count(r *run, more int, now time.Time) {
	s.running += more
	s.operations[r.Operation].running += more
	add(s.credentials, r.Credential, more)
	of := s.groups[r.Group]
	of.running += more
	s.sequence++
	of.served, of.sequence = now, s.sequence
	for _, l := range of.queues {
		l.lane.moved(l)
	}
}

// idles tracks a run that executes without a worker, or has ended.
func (s *scheduler) idles(r *run, more int) {
	add(s.idleGroups, r.Group, more)
	add(s.idleCredentials, r.Credential, more)
}

// add changes a count, and forgets it when it is zero.
func add(counts map[string]int, key string, more int) {
	if counts[key] += more; counts[key] == 0 {
		delete(counts, key)
	}
}

// best returns the queue whose turn it is. An operation below its reserved share comes first, then
// the group with the fewest running runs, then the run with the highest priority, which grows with
// age.
func (s *scheduler) best(now time.Time, lifted bool) (best *groupQueue, pick string) {
	short, highest := false, len(precedence)
	for _, operation := range precedence {
		l := s.operations[operation].next(s, now, lifted)
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

// precedes compares queues of different operations. Within a group, the runs' own age counts.
func (s *scheduler) precedes(a, b *groupQueue) bool {
	if a.group == b.group {
		return s.due(a, a.first.status.QueuedAt).Before(s.due(b, b.first.status.QueuedAt))
	}
	if a.group.running != b.group.running {
		return a.group.running < b.group.running
	}
	return s.due(a, a.since()).Before(s.due(b, b.since()))
}

// due combines age and priority: one rank is worth one aging period.
func (s *scheduler) due(l *groupQueue, since time.Time) time.Time {
	return since.Add(time.Duration(l.lane.queue.rank) * s.limits.aging)
}

// next returns the operation's queue whose turn it is among those that the caps allow.
func (q *operationQueue) next(s *scheduler, now time.Time, lifted bool) *groupQueue {
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
		} else if !s.capped(first.credential, now, lifted) {
			return l
		}
		capped = append(capped, heap.Pop(&q.order).(*lane))
	}
	return nil
}

// capped reports whether no further run of a credential may start. The cap of a throttled one is
// never lifted.
func (s *scheduler) capped(credential string, now time.Time, lifted bool) bool {
	running := s.credentials[credential]
	if t := s.throttles[credential]; t != nil &&
		(now.Before(t.until) || running+s.idleCredentials[credential] >= t.most) {
		return true
	}
	return !lifted && credential != "" && running >= s.limits.perCredential
}

// add, drop and moved keep the lane in order, and its place among the operation's lanes.
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
