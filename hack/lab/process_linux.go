package lab

import "syscall"

// childAttributes makes a child die with this program.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
