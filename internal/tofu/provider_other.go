//go:build !linux

package tofu

import "syscall"

// providerProcess has nothing to ask for where a child can't be tied to its parent.
func providerProcess() *syscall.SysProcAttr { return nil }
