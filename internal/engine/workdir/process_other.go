//go:build !linux

package workdir

import "syscall"

// ChildAttributes makes a child the head of a process group of its own. Only Linux can have it die with this process.
func ChildAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
