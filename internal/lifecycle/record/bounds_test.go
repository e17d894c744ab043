package record

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A time that is yet to come was written by somebody else, and would be waited for.
func TestTimesThatAreYetToComeAreNotBelieved(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	skewed, far := noon.Add(MaxSkew), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	settling := skewed.Add(time.Hour)
	for name, tc := range map[string]struct{ given, want Record }{
		"nothing": {},
		"what a clock that is ahead has written": {
			given: Record{
				Intent: &Intent{Died: skewed, Looked: true}, Check: &DriftCheck{At: skewed}, Repair: &Repair{At: skewed, Count: 3}, SecondLook: &settling,
				AdoptionPlan: &PlannedAdoption{At: skewed, Absent: skewed},
			},
			want: Record{
				Intent: &Intent{Died: skewed, Looked: true}, Check: &DriftCheck{At: skewed}, Repair: &Repair{At: skewed, Count: 3}, SecondLook: &settling,
				AdoptionPlan: &PlannedAdoption{At: skewed, Absent: skewed},
			},
		},
		"an abandoned run is looked up again": {
			given: Record{Intent: &Intent{Run: "r", Died: far, Looked: true}}, want: Record{Intent: &Intent{Run: "r"}},
		},
		"an instance is compared again":            {given: Record{Check: &DriftCheck{At: far, Result: DriftMissing}}},
		"a repair is made again":                   {given: Record{Repair: &Repair{At: far}}},
		"a count that nobody can reach is none":    {given: Record{Repair: &Repair{At: noon, Count: -1}}},
		"a second instance is looked for":          {given: Record{SecondLook: &far}, want: Record{SecondLook: &noon}},
		"an adoption is planned again":             {given: Record{AdoptionPlan: &PlannedAdoption{At: far, Refused: "x"}}, want: Record{AdoptionPlan: &PlannedAdoption{Refused: "x"}}},
		"an instance to adopt is looked for again": {given: Record{AdoptionPlan: &PlannedAdoption{At: noon, Absent: far}}, want: Record{AdoptionPlan: &PlannedAdoption{}}},
	} {
		t.Run(name, func(t *testing.T) {
			given := tc.given
			if diff := cmp.Diff(tc.want, given.Believed(noon)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.given, given); diff != "" {
				t.Errorf("the record itself was changed:\n%s", diff)
			}
		})
	}
}

func TestARepairIsDueWhateverItsCount(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, count := range []int{-1 << 62, -1, 0, 1, 1 << 62} {
		if until := (&Repair{At: noon, Count: count}).Until(time.Hour); until.Before(noon) || until.After(noon.Add(maxRepairPause)) {
			t.Errorf("with the count %d the next is due at %s", count, until)
		}
	}
}

func TestARequestForACheckIsBounded(t *testing.T) {
	for given, want := range map[string]string{
		"":                             "",
		"2026-03-01T12:00:00Z":         "2026-03-01T12:00:00Z",
		strings.Repeat("x", 999):       strings.Repeat("x", 128),
		strings.Repeat("ä", 999):       strings.Repeat("ä", 64),
		"x" + strings.Repeat("ä", 999): "x" + strings.Repeat("ä", 63),
	} {
		if got := CheckRequest(map[string]string{CheckDriftAnnotation: given}); got != want {
			t.Errorf("of %.20q it returns %q", given, got)
		}
	}
}

// What an engine or a provider says, of any length, must leave room in the annotations of the
// state's Secret: the write that gives the lock back has it.
func TestWhatIsRecordedFitsASecret(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	p := NewPatch().SetIntent(Intent{Reason: long})
	p.SetCheck(DriftCheck{Summary: long, Request: CheckRequest(map[string]string{CheckDriftAnnotation: long})})
	p.SetRefusal(Refusal{Message: long})
	p.SetModuleRefusal(Refusal{Message: long})
	p.SetRepair(Repair{Refused: long})
	p.SetLastRun(LastRun{Message: long, Reason: long})
	p.SetAdoptionPlan(PlannedAdoption{Imports: slices.Repeat([]string{long}, 99), Refused: long}.Bounded())
	total := 0
	meta := map[string]string{}
	for key, value := range p.MetaPatch {
		total += len(key) + len(*value)
		meta[key] = *value
	}
	if total > 128<<10 {
		t.Errorf("it takes %d bytes", total)
	}
	if read, err := Read(meta); err != nil || !strings.HasSuffix(read.Check.Summary, "ä...") {
		t.Errorf("it is read as %v, %v", read.Check, err)
	}
}
