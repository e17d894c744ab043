//go:build unix && !linux

package workdir

import "syscall"

// ChildAttributes makes a child lead its own process group. Only Linux can make it die with this
// process.
func ChildAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
