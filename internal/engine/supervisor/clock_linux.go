package supervisor

import (
	"time"

	"golang.org/x/sys/unix"
)

// now is a time that all processes of this machine share. Nobody sets it, and it goes on while the machine sleeps.
func now() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		panic("reading the clock: " + err.Error()) // it fails for a bad argument only
	}
	return time.Duration(at.Nano())
}
