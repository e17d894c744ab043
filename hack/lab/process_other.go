//go:build !linux

package lab

import "syscall"

// childAttributes returns no attributes: only Linux can tie a child's life to this program's.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
