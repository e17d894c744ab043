package workdir

import "syscall"

// ChildAttributes makes a child die with this process and lead its own process group. The whole
// group can be signaled, and a signal to this process's group does not reach the child. The kernel
// ends the child when the thread that started it ends, so the goroutine must stay locked to its
// thread (runtime.LockOSThread) until the child has exited.
func ChildAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
