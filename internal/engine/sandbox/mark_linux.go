package sandbox

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// setMark marks this process permanently. A marked process is in a sandbox itself, and what it
// starts keeps its mark.
func setMark(m Mark) error {
	if _, marked := markOf(0); marked {
		return nil
	}
	for limit, value := range map[int]uint64{unix.RLIMIT_LOCKS: uint64(m), unix.RLIMIT_RTTIME: markSum - uint64(m)} {
		if err := unix.Prlimit(0, limit, &unix.Rlimit{Cur: value, Max: value}, nil); err != nil {
			return fmt.Errorf("marking this process with its resource limit %d: %w", limit, err)
		}
	}
	return nil
}

// MarkOf returns the mark of a running process. Marks of other users' processes are unknown.
func MarkOf(pid int) (m Mark, marked bool) {
	if m, marked = markOf(pid); marked && lives(pid) {
		return m, true
	}
	return 0, false
}

// markOf returns the mark of a process, or of this one if pid is zero.
func markOf(pid int) (m Mark, marked bool) {
	var locks, realTime unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &locks) != nil ||
		unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &realTime) != nil {
		return 0, false
	}
	return fromLimits(locks.Max, realTime.Max)
}

// lives reports whether a thread of a process runs. A process whose first thread has exited looks
// like one that has exited.
func lives(pid int) bool {
	process := filepath.Join("/proc", strconv.Itoa(pid))
	if threadLives(process) {
		return true
	}
	threads, _ := os.ReadDir(filepath.Join(process, "task")) // it may have exited since
	return slices.ContainsFunc(threads,
		func(one os.DirEntry) bool { return threadLives(filepath.Join(process, "task", one.Name())) })
}

func threadLives(dir string) bool {
	raw, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return false
	}
	state := bytes.TrimSpace(raw[bytes.LastIndexByte(raw, ')')+1:]) // the name may contain any character
	return len(state) > 0 && !bytes.ContainsRune([]byte("ZX"), rune(state[0]))
}

// Peer returns the process at the other end of a local connection.
func Peer(of *net.UnixConn) (pid int, err error) {
	raw, err := of.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("identifying the peer of a connection: %w", err)
	}
	var found *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		found,
			failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || failed != nil {
		return 0, fmt.Errorf("identifying the peer of a connection: %w %w", err, failed)
	}
	return int(found.Pid), nil
}
