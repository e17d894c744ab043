//go:build !linux

package sandbox

import "net"

// available means that there is a launcher for this system. Only Linux has Landlock.
const available = false

const ownProgram = ""

func landlockABI() (version int, lacks string) { return 0, "only Linux supports it" }

// Hide does nothing on this system.
func Hide() error { return nil }

// MarkOf returns no mark on this system.
func MarkOf(int) (m Mark, marked bool) { return 0, false }

func markOf(int) (m Mark, marked bool) { return 0, false }

// Peer returns no process on this system.
func Peer(*net.UnixConn) (pid int, err error) { return 0, nil }
