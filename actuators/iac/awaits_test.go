package iac

import (
	"errors"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

func TestOnlyWhatTheMirrorMayCureIsTriedAgainSoon(t *testing.T) {
	saying := func(summary string) []failure.Diagnostic { return []failure.Diagnostic{{Summary: summary}} }
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"the mirror lacks a provider": {&failure.Error{Op: failure.OpInit, Class: failure.ProviderNotInstalled, Diagnostics: saying("none")}, true},
		"the manifest does not vouch": {&failure.Error{Op: failure.OpInit, Class: failure.Unknown, Err: errors.New("does not match")}, true},
		"the module is wrong":         {&failure.Error{Op: failure.OpInit, Class: failure.Unknown, Diagnostics: saying("Invalid block")}, false},
		"the engine was killed":       {&failure.Error{Op: failure.OpInit, Class: failure.Killed, Err: errors.New("signal")}, false},
		"an apply failed":             {&failure.Error{Op: failure.OpApply, Class: failure.Unknown, Err: errors.New("no")}, false},
		"no engine's error":           {errors.New("no"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := awaitsProvider(tc.err); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
