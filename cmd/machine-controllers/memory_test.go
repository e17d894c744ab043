package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestTheMemoryLimit(t *testing.T) {
	const ofContainer = 1000
	for name, tc := range map[string]struct {
		flag  string
		found error
		want  int64
		err   string
	}{
		"nine tenths of the container's":    {"", nil, 900, ""},
		"none without one":                  {"", memlimit.ErrNoLimit, 0, ""},
		"none outside of a container":       {"", memlimit.ErrNoCgroup, 0, ""},
		"none where there is no such thing": {"", memlimit.ErrCgroupsNotSupported, 0, ""},
		"unreadable":                        {"", errors.New("broken"), 0, ""},
		"that of the flag":                  {"512Mi", nil, 512 << 20, ""},
		"none by the flag":                  {"0", nil, 0, ""},
		"no quantity":                       {"much", nil, 0, `invalid --memory-limit "much"; use a quantity`},
		"a negative one":                    {"-1Gi", nil, 0, `invalid --memory-limit "-1Gi"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{memoryLimit: tc.flag}
			err := o.checkMemory(func() (uint64, error) { return ofContainer, tc.found })
			switch {
			case (err != nil) != (tc.err != ""), err != nil && !strings.Contains(err.Error(), tc.err):
				t.Errorf("the error is %v, want %q", err, tc.err)
			case (o.memoryUnknown != nil) != (name == "unreadable"):
				t.Errorf("the limit is unknown because of %v", o.memoryUnknown)
			case o.memoryBytes != tc.want:
				t.Errorf("the limit is %d, want %d", o.memoryBytes, tc.want)
			}
		})
	}
}

func TestWarmProvidersLeaveRoomForRuns(t *testing.T) {
	for limit, want := range map[int64]int64{0: 1 << 30, 512 << 20: 128 << 20, 64 << 30: 1 << 30} {
		o := &options{memoryBytes: limit}
		o.warmMemory.Quantity = resource.MustParse("1Gi")
		if got := o.warmShare(); got != want {
			t.Errorf("with a limit of %d they may take %d, want %d", limit, got, want)
		}
		if o.pulumiPlugins = "plugins"; o.warmShare() != want/2 {
			t.Errorf("with a limit of %d those of each of two engines may take %d, want half", limit, o.warmShare())
		}
	}
}
