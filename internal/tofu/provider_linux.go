package tofu

import "syscall"

// providerProcess has the plugin die with this process, and keeps a terminal's interrupt from it.
func providerProcess() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
