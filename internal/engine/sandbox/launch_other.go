//go:build !linux

package sandbox

// available says that there is a launcher for this system. Only Linux has Landlock.
const available = false

const ownProgram = ""

func landlockABI() int { return 0 }

// Hide does nothing here.
func Hide() error { return nil }
