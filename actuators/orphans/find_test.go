package orphans

import (
	"context"
	"fmt"
	"slices"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// machinesOf has Machines by their UIDs, and counts how often they are listed. Metadata it lists
// two at a time.
type machinesOf struct {
	client.Client
	uids  []types.UID
	lists int
}

func (m *machinesOf) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	m.lists++
	made := func(uid types.UID) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", UID: uid} }
	asked := (&client.ListOptions{}).ApplyOptions(options)
	switch list := into.(type) {
	case *machinev1beta1.MachineList:
		for _, uid := range m.uids {
			list.Items = append(list.Items, machinev1beta1.Machine{ObjectMeta: made(uid)})
		}
	case *metav1.PartialObjectMetadataList:
		first := 0
		if _, err := fmt.Sscan(asked.Continue, &first); asked.Continue != "" && err != nil {
			return err
		}
		for _, uid := range m.uids[first:min(first+2, len(m.uids))] {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: made(uid)})
		}
		if first+2 < len(m.uids) {
			list.Continue = fmt.Sprint(first + 2)
		}
	}
	return nil
}

func TestMachinesAreListedOnlyWhereTheCacheLacksOne(t *testing.T) {
	states := []types.UID{"a", "b", "c"}
	for name, tc := range map[string]struct {
		cached, live []types.UID
		want         []types.UID
		wantLists    int
	}{
		"all have theirs":                {cached: states},
		"the cache lags behind":          {cached: states[:1], live: states, wantLists: 2},
		"one has none":                   {cached: states[:2], live: states[:2], want: states[2:], wantLists: 1},
		"the cache has one that is gone": {cached: states, live: states[:2]}, // the next pass sees it
		"none has":                       {want: states, wantLists: 1},
	} {
		t.Run(name, func(t *testing.T) {
			live := &machinesOf{uids: tc.live}
			o := New(Options{Namespace: "ns", Client: live, Cache: &machinesOf{uids: tc.cached}})
			var heads []state.Head
			for _, uid := range states {
				heads = append(heads, state.Head{Key: state.KeyFor("ns", uid)})
			}
			found, err := o.find(t.Context(), heads)
			if err != nil {
				t.Fatal(err)
			}
			var got []types.UID
			for _, uid := range states {
				if slices.ContainsFunc(found, func(head state.Head) bool { return head.Key == state.KeyFor("ns", uid) }) {
					got = append(got, uid)
				}
			}
			if !slices.Equal(got, tc.want) || live.lists != tc.wantLists {
				t.Errorf("without a Machine are %v after %d lists, want %v after %d", got, live.lists, tc.want, tc.wantLists)
			}
		})
	}
}
