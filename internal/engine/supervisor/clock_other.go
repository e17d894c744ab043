//go:build !linux

package supervisor

import (
	"time"

	"k8s.io/utils/clock"
)

// now returns a time that all processes of this machine share. Only Linux has one that cannot be
// set.
func now() time.Duration { return time.Duration(clock.RealClock{}.Now().UnixNano()) }
