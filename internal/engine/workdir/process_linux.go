package workdir

import "syscall"

// ChildAttributes has a child die with this process, and makes it the head of a process group of its own: the whole group can be ended,
// and a signal to this process's group does not reach it. The kernel sends the signal when the thread ends that started the child, so
// the goroutine that starts one stays locked to its thread (runtime.LockOSThread) until the child has ended.
func ChildAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
