package sandbox

import (
	"hash/fnv"
	"hash/maphash"
)

// Mark identifies the manager that has started a confined process, and the folder it was started
// in. All child processes have the same mark. No process can remove its mark or take another. The
// mark is two hard resource limits, which only a privilege that engines lack can raise. Their sum
// is the same in every mark, so each other mark would need one of them to be higher.
//
// Neither limit is used otherwise: RLIMIT_LOCKS has had no effect since Linux 2.4.25, and
// RLIMIT_RTTIME limits threads with real-time priority, here to 73,000 years or more.
type Mark uint64

const (
	// marks is the number of marks. The upper bits identify the work folder, the lower ones the folder
	// in it.
	marks      = Mark(1) << 62
	folderBits = 38
	// markSum is the sum of both limits of a mark.
	markSum = uint64(marks) + 1<<61
	// changed is the mark of a process that has lowered a limit, so that its manager is unknown.
	changed = marks
)

// seed prevents choosing two folder names with the same mark.
var seed = maphash.MakeSeed()

func ofWork(dir string) Mark {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(dir)) // never fails
	return Mark(hash.Sum64()) % (marks >> folderBits)
}

func ofFolder(dir string) Mark { return Mark(maphash.String(seed, dir)) & (1<<folderBits - 1) }

// mark returns the mark for a policy. The first folder of Write is the process's own.
func (s *Sandbox) mark(p Policy) Mark {
	made := s.work << folderBits
	if len(p.Write) > 0 {
		made |= ofFolder(p.Write[0])
	}
	return made
}

// Managed reports whether the process may belong to the manager with a work folder. One that has
// changed its mark may.
func (m Mark) Managed(work string) bool { return m == changed || m>>folderBits == ofWork(work) }

// In reports whether this process may have started the other one, or an ancestor, in a folder. One
// that has changed its mark may be.
func (m Mark) In(dir string) bool { return m == changed || m&(1<<folderBits-1) == ofFolder(dir) }

// Admits returns a function that reports whether a process was started in a folder, for servers
// that serve only that folder's processes. If files are not confined, a process could impersonate
// any other, so all are admitted.
func (s *Sandbox) Admits(dir string) func(pid int) bool {
	return func(pid int) bool {
		if s.ABI() == 0 {
			return true
		}
		mark, marked := markOf(pid)
		return marked && mark != changed && mark>>folderBits == s.work && mark.In(dir)
	}
}

// fromLimits returns the mark encoded in two limits. Infinite limits are not a mark.
func fromLimits(locks, realTime uint64) (m Mark, marked bool) {
	const infinite = ^uint64(0)
	switch {
	case locks == infinite || realTime == infinite:
		return 0, false
	case locks < uint64(marks) && locks+realTime == markSum:
		return Mark(locks), true
	default:
		return changed, true
	}
}
