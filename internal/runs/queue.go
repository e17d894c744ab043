package runs

// queue holds waiting runs: one line per group within each operation, groups served in turn. It is not safe for concurrent use.
type queue struct {
	lanes map[Operation]*turnstile
	size  int
}

// turnstile is the waiting runs of one operation.
type turnstile struct {
	turns []string
	lines map[string][]*run
}

func newQueue() *queue {
	q := &queue{lanes: map[Operation]*turnstile{}}
	for _, operation := range precedence {
		q.lanes[operation] = &turnstile{lines: map[string][]*run{}}
	}
	return q
}

func (q *queue) push(r *run) {
	l := q.lanes[r.Operation]
	if len(l.lines[r.Group]) == 0 {
		l.turns = append(l.turns, r.Group)
	}
	l.lines[r.Group] = append(l.lines[r.Group], r)
	q.size++
}

// pop takes the next run of an operation that admits allows, nil when there is none.
func (q *queue) pop(admits func(Operation) bool) *run {
	for _, operation := range precedence {
		l := q.lanes[operation]
		if len(l.turns) == 0 || !admits(operation) {
			continue
		}
		q.size--
		return l.pop()
	}
	return nil
}

func (l *turnstile) pop() *run {
	group := l.turns[0]
	l.turns = l.turns[1:]
	line := l.lines[group]
	next := line[0]
	if len(line) == 1 {
		delete(l.lines, group)
	} else {
		l.lines[group] = line[1:]
		l.turns = append(l.turns, group)
	}
	return next
}

// remove takes r out of the queue wherever it stands.
func (q *queue) remove(r *run) {
	l := q.lanes[r.Operation]
	line := l.lines[r.Group]
	for i, waiting := range line {
		if waiting != r {
			continue
		}
		q.size--
		l.lines[r.Group] = append(line[:i:i], line[i+1:]...)
		if len(l.lines[r.Group]) == 0 {
			delete(l.lines, r.Group)
			l.dropTurn(r.Group)
		}
		return
	}
}

func (l *turnstile) dropTurn(group string) {
	for i, turn := range l.turns {
		if turn == group {
			l.turns = append(l.turns[:i:i], l.turns[i+1:]...)
			return
		}
	}
}
