package supervisor

import (
	"time"

	"golang.org/x/sys/unix"
)

// now returns a time that all processes of this machine share. It cannot be set, and continues
// while the machine sleeps.
func now() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		panic("reading the clock: " + err.Error()) // only an invalid argument fails
	}
	return time.Duration(at.Nano())
}
