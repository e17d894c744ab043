package desired

import (
	"errors"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

func TestChoose(t *testing.T) {
	own, next := &State{Fingerprint: "present"}, &State{Fingerprint: "another"}
	refusedNext := record.Record{ModuleRefusal: &record.Refusal{Fingerprint: "another", Message: "refused"}}
	for name, tc := range map[string]struct {
		candidates   candidates
		record       record.Record
		want         *State
		wantWithheld string
	}{
		"its own, without another that it may get":              {candidates{pinned: own}, record.Record{}, own, ""},
		"the other, where it may get it":                        {candidates{pinned: own, next: next}, record.Record{}, next, ""},
		"its own first, while something is half done":           {candidates{pinned: own, next: next}, record.Record{Intent: &record.Intent{}}, own, ""},
		"its own, once the other has been refused":              {candidates{pinned: own, next: next}, refusedNext, own, "refused"},
		"the other, when something else was refused":            {candidates{pinned: own, next: next}, record.Record{ModuleRefusal: &record.Refusal{Fingerprint: "present"}}, next, ""},
		"its own, where the other does not take it":             {candidates{pinned: own, nextErr: &InvalidError{Message: "cpu"}}, record.Record{}, own, "rejects this providerSpec: cpu"},
		"the other, where its own does not take it":             {candidates{pinnedErr: errors.New("cpu"), next: next}, record.Record{}, next, ""},
		"the other, where its own is missing, also half done":   {candidates{next: next}, record.Record{Intent: &record.Intent{}}, next, ""},
		"nothing, where its own is missing and other refused":   {candidates{next: next}, refusedNext, nil, "refused"},
		"nothing, where its own does not take it":               {candidates{pinnedErr: errors.New("cpu")}, record.Record{}, nil, ""},
		"its own, where the other cannot be rendered right now": {candidates{pinned: own, nextErr: errors.New("no Secret")}, record.Record{}, own, "no Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.candidates.choose(&lifecycle.Facts{Record: tc.record})
			if got.State != tc.want {
				t.Errorf("got %+v, want %+v", got.State, tc.want)
			}
			if withheld := got.Withheld; withheld == nil && tc.wantWithheld != "" ||
				withheld != nil && (tc.wantWithheld == "" || !strings.Contains(withheld.Error(), tc.wantWithheld)) {
				t.Errorf("withheld %v, want %q", withheld, tc.wantWithheld)
			}
			if tc.want == next && got.Pinned != tc.candidates.pinned {
				t.Errorf("the pinned one is %+v, want %+v beside the other", got.Pinned, tc.candidates.pinned)
			}
		})
	}
}
